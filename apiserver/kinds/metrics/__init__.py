"""NodeMetrics and PodMetrics: the resource usage of nodes and pods, as metrics-server reports it.

A module belongs here if it describes the kinds of the metrics groups.
"""
