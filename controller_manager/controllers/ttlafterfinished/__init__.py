"""Finished Jobs that say how long they are to be kept.

A module belongs here if it decides when one of them goes. Upstream: pkg/controller/ttlafterfinished.
"""
