"""The controllers of the manager, a folder for each.

A folder belongs here if it contains a `Controller`, which decides by a pure function of the caches and the time, or a
`Runnable`, which has to call the server before it can decide.
"""
