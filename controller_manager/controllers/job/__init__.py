"""The controller of Jobs: it runs pods until a number of them has succeeded, and counts each pod exactly once.

A module belongs here if it is part of this controller. It reads caches and returns plans. Upstream:
pkg/controller/job.
"""
