"""Containers that run as processes of this machine. What starts, watches, probes or stops such a process belongs here.

Imported only where `--container-runtime=process` is given. What a pod's status says of them is in `pod_lifecycle`.
"""
