"""The language that the API server and the controller manager share.

A module belongs here if the API server and the controller manager would otherwise each write it. It is pure: no I/O,
no event loop, and no state between calls except caches. Only `clock.py` and `randomness.py` use the machine's time and
randomness.
"""
