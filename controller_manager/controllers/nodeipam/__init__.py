"""The ranges of addresses that nodes have for their pods.

A module belongs here if it allocates ranges to nodes. The kubelet allocates a pod's address in its node's range.
"""
