"""The ranges of addresses that nodes have for their pods.

A module belongs here if it gives nodes ranges. Which address of its node's range a pod has is the kubelet's to say.
"""
