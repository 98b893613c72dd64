"""What stands for storage: a provisioner of volumes that hold nothing, and a class that asks for them.

A module belongs here if a cluster with disks would have something outside Kubernetes in its place.
"""
