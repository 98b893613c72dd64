"""The controllers of ReplicaSets and ReplicationControllers: they maintain a number of pods of one template.

A module belongs here if it is part of these controllers. It reads caches and returns plans. Upstream:
pkg/controller/replicaset and pkg/controller/replication.
"""
