"""How many pods each subset gets: a file for each way to share them out.

A module belongs here if it is arithmetic on `Place`s: nothing here knows an object or a cache.
"""
