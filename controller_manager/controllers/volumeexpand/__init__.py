"""Claims that request more than their capacity: the resizer that expands their volumes.

A module belongs here if it decides that. The driver's own resizer expands. Upstream:
pkg/controller/volume/expand.
"""
