"""The controller of ServiceCIDRs: their finalizer, and their condition Ready.

A module belongs here if it decides when a range of addresses may be deleted. Upstream: pkg/controller/servicecidrs.
"""
