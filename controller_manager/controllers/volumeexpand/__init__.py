"""The controller of claims that request more than their capacity: it finds the resizer that expands the volume.

A module belongs here if it is part of this controller. The driver's resizer expands the volumes. Upstream:
pkg/controller/volume/expand.
"""
