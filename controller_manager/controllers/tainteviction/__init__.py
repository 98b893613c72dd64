"""The controller that evicts pods from nodes with NoExecute taints, unless they tolerate them for ever.

A module belongs here if it decides how long a pod may stay on such a node.
"""
