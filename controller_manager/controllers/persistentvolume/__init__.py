"""Claims and their volumes: binding, waiting, loss, release. Upstream: pkg/controller/volume/persistentvolume.

A module belongs here if it decides about a claim or a volume; `storage` decides whether one matches the other. A plan
writes each object once: the change requeues its key for the next step.
"""
