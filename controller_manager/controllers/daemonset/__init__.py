"""The controller of DaemonSets: one pod on each node that fits.

A module belongs here if it is part of this controller. It reads caches and returns plans. Upstream:
pkg/controller/daemon.
"""
