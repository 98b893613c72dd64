"""The volumes of pods on their nodes.

A module belongs here if it finds out whether a volume is attached, exists on the node, and can be mounted. Pure.
"""
