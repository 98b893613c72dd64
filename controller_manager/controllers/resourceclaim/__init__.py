"""The controller of ResourceClaims: creation from pods' templates, reservation, and deallocation.

A module belongs here if it decides about claims of pods. The scheduler allocates devices.
Upstream: pkg/controller/resourceclaim.
"""
