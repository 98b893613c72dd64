"""The controller that binds PersistentVolumeClaims and volumes. Upstream: pkg/controller/volume/persistentvolume.

A module belongs here if it decides about a claim or a volume; `workloads.volumes` matches claims and volumes. A plan
writes each object once: the change requeues its key for the next step.
"""
