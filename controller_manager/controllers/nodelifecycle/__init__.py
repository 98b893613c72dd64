"""The health of nodes: silent ones become unknown, and conditions become taints.

A module belongs here if it monitors nodes. `controllers.tainteviction` evicts the pods of tainted nodes.
"""
