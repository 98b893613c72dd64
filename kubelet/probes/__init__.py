"""The probes and hooks of containers that run in real time.

A module belongs here if it decides when a probe or a hook runs, or makes an attempt of it by the network or by a command in the container.
The results that are known before a container runs are in `pod_lifecycle/probe_results.py`.
"""
