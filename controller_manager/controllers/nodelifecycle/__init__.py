"""The node lifecycle controller: it marks nodes without heartbeats as unknown, and taints nodes by their conditions.

A module belongs here if it monitors nodes. `controllers.tainteviction` evicts the pods of tainted nodes.
"""
