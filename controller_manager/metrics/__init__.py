"""What Prometheus reads of a manager, under the names that client-go and controller-runtime gave.

A module belongs here if it counts or measures. It knows nothing of what it counts.
"""
