"""Simulated nodes and their kubelets.

A module belongs here if it is a part of a node or of its kubelet. `pod_lifecycle/` computes a pod's status, `stages/` reads
and applies kwok's `Stage` documents. Both return the same effects, which `status_writer` executes.
"""
