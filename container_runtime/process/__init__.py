"""Containers that run as processes of this machine.

A module belongs here if it starts, watches, probes or stops such a process. The package is imported only with
`--container-runtime=process`. `pod_lifecycle` computes the pod's status from the processes' states.
"""
