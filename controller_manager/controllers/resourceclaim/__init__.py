"""ResourceClaims: those that pods get of templates, who reserves them, and when they are given back.

A module belongs here if it decides about claims for pods. Which devices a claim is given is the scheduler's to say.
Upstream: pkg/controller/resourceclaim.
"""
