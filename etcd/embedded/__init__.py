"""The store that lives in this process: in memory, or made durable by a log on disk.

A module belongs here if it is a part of that store. `mvcc.py` and what it is made of are synchronous and pure. The
event loop belongs to the stores, to `hub.py` and `watch.py`, and to the modules that use a disk beside it:
`disk_thread.py`, `group_commit.py` and `checkpoint.py`. Logs and snapshots are written through `disk.py` alone.
"""
