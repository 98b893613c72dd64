"""Controllers that decide from the caches alone.

A folder belongs here if it holds a descriptor and pure functions, and no coroutine.
"""
