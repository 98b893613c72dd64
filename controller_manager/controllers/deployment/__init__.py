"""Deployments: one ReplicaSet for each version of a pod template, and the way from one version to the next.

A module belongs here if it decides something for Deployments; it reads caches and answers with plans. Upstream:
pkg/controller/deployment.
"""
