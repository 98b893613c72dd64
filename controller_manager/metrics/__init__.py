"""The metrics of a manager, with the names of client-go and controller-runtime.

A module belongs here if it counts or measures. It is independent of what it counts.
"""
