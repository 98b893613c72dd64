"""Allocate devices of nodes for the claims of pods.

A module belongs here if it is part of that. Upstream: plugins/dynamicresources and k8s.io/dynamic-resource-allocation.
"""
