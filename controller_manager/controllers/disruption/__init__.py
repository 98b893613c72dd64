"""The controller of PodDisruptionBudgets: it counts the pods that may be evicted.

A module belongs here if it counts pods for a budget, or cleans up after evictions that did not happen. The API server
handles the evictions. Upstream: pkg/controller/disruption.
"""
