"""Eviction of pods whose devices are tainted, unless their claims tolerate it.

A module belongs here if it decides when. Upstream: pkg/controller/devicetainteviction.
"""
