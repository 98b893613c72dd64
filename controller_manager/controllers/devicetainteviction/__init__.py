"""The controller that evicts pods with tainted devices, unless their claims tolerate the taints.

A module belongs here if it decides on these evictions. Upstream: pkg/controller/devicetainteviction.
"""
