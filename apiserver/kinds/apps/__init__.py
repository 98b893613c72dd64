"""The kinds of apps.

A module belongs here if it describes one of them. What they share with other kinds that run pods is in `core/pod/workloads.py`.
"""
