"""Containers that run as processes of this machine. What starts, watches, probes or stops such a process belongs here.

Imported only with `--container-runtime=process`. Their part of a pod's status is in `pod_lifecycle`.
"""
