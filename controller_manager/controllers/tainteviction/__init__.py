"""The eviction of pods from nodes with NoExecute taints that they do not tolerate, or not for ever.

A module belongs here if it decides how long a pod may stay on such a node.
"""
