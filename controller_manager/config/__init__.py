"""The command line, read into frozen records.

A module belongs here if it defines flags, or reads them and the files that they name into records. Nothing here starts
or waits for anything.
"""
