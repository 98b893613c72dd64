"""The command line, read into frozen records.

A module belongs here if it says which flags there are, or makes records of them and of the files that they name. Nothing
here starts or waits for anything.
"""
