"""The language that the API server and the controller manager share.

A module belongs here if the API server and the controller manager would otherwise each write it. It is pure: no I/O,
no event loop, and no state between calls except caches. Only `randomness.py` uses the machine's randomness, and only
`x509/system_roots.py` reads files other than its own data. What one of the two reaches alone belongs to it; a test checks that.
"""
