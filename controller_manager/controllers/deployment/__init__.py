"""The controller of Deployments: one ReplicaSet for each version of the pod template, and rollouts between versions.

A module belongs here if it is part of this controller. It reads caches and returns plans. Upstream:
pkg/controller/deployment.
"""
