"""The controller of ephemeral volumes: claims with the lifetime of their pods. Upstream: pkg/controller/volume/ephemeral.

A module belongs here if it creates the claims of a pod's `ephemeral` volumes.
"""
