"""The embedded store of this process: in memory, or durable through a log on disk.

A module belongs here if it is a part of that store. `mvcc.py` and the modules under it are synchronous and pure. Only
the stores, `hub.py`, `watch.py` and the modules that write to a disk (`disk.py`, `group_commit.py`, `checkpoint.py`)
use the event loop. Logs and snapshots are written through `disk.py` alone.
"""
