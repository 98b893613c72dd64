"""NodeMetrics and PodMetrics: the resource usage of nodes and pods, as metrics-server reports it.

A module belongs here if it says how the kinds of metrics.k8s.io are named and printed.
"""
