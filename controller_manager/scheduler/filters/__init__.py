"""Which nodes can take a pod.

A module belongs here if it is one reason why a node cannot; `filter` says what they all are.
"""
