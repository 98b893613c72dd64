"""Pods whose devices are tainted: they have to go, unless their claims tolerate it.

A module belongs here if it decides when. Upstream: pkg/controller/devicetainteviction.
"""
