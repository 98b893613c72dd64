"""ReplicaSets, and ReplicationControllers which do the same: so many pods of one template.

A module belongs here if it decides something for them; it reads caches and answers with plans. Upstream:
pkg/controller/replicaset and pkg/controller/replication.
"""
