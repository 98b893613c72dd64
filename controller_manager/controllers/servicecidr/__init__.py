"""ServiceCIDRs: their finalizer, and whether they are ready.

A module belongs here if it decides when a range of addresses may go. Upstream: pkg/controller/servicecidrs.
"""
