"""Volumes and claims that are deleted while they are in use: their finalizers keep them until they are not.

A module belongs here if it decides whether something of storage is in use. Upstream: pkg/controller/volume/pvcprotection
and pvprotection.
"""
