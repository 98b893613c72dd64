"""NodeMetrics and PodMetrics: what nodes and pods use, as metrics-server tells it.

A module belongs here if it says how the kinds of metrics.k8s.io are named and printed.
"""
