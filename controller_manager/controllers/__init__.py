"""Controllers that decide from the caches alone: a descriptor and pure functions each, and no coroutine."""
