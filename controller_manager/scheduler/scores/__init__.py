"""Which of the nodes that can take a pod is best.

A module belongs here if it is one way to look at that; `score` says what they all are.
"""
