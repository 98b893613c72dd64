"""The controller that allocates ranges of pod addresses to nodes.

A module belongs here if it allocates ranges to nodes. The kubelet allocates a pod's address from its node's range.
"""
