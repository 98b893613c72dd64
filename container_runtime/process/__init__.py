"""Containers that run as processes of this machine.

A module belongs here if it starts, watches or stops such a process. The package is imported only with
`--container-runtime=process`, apart from what kwok's objects need, and operators outside of the cluster that stand for a pod.
"""
