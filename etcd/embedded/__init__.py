"""The store that lives in this process: in memory, or made durable by a log on disk.

A module belongs here if it is a part of that store. `mvcc.py` and what it is made of are synchronous and pure; the
event loop is touched by `watch.py` and the two stores alone, and the disk by `wal.py` and its kin.
"""
