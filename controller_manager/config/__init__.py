"""The command line, read into frozen records.

A module belongs here if it says which flags there are, or makes a `Config` of them. Nothing here opens, starts or
waits for anything.
"""
