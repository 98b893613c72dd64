"""Devices for the claims of a pod: which a node offers, and which of them a claim is given.

A module belongs here if it decides that. Upstream: plugins/dynamicresources and k8s.io/dynamic-resource-allocation.
"""
