"""StatefulSets: pods with a name, an order and storage of their own.

A module belongs here if it decides something for StatefulSets; it reads caches and answers with plans. Upstream:
pkg/controller/statefulset.
"""
