"""PodDisruptionBudgets: how many pods may be evicted now. Upstream: pkg/controller/disruption.

A module belongs here if it counts pods for a budget, or cleans up after evictions that did not happen. The eviction
itself is the API server's.
"""
