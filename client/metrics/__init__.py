"""The metrics of a process with controllers, with the names of client-go and controller-runtime.

A module belongs here if it counts or measures requests, caches, queues or reconciliations. It is independent of what it counts.
"""
