"""Finished Jobs with a time to live.

A module belongs here if it decides when to delete one. Upstream: pkg/controller/ttlafterfinished.
"""
