"""ResourceClaims: those created from pods' templates, their reservations, and their deallocation.

A module belongs here if it decides about claims for pods. The scheduler allocates the devices.
Upstream: pkg/controller/resourceclaim.
"""
