"""DaemonSets: one pod on each node that fits.

A module belongs here if it decides something for them; it reads caches and answers with plans. Upstream:
pkg/controller/daemon.
"""
