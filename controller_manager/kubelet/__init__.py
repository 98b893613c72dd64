"""Simulated nodes and their kubelets.

A module belongs here if it is a part of a node or of its kubelet. `pod_lifecycle/` decides a pod's status, `stages/` reads
and plays kwok's `Stage` documents; both are pure and return the same effects, which `status_writer` executes.
"""
