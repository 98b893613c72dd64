"""Volumes and claims that are deleted while they are in use: their finalizers keep them until they are not.

Upstream: pkg/controller/volume/pvcprotection and pvprotection.
"""
