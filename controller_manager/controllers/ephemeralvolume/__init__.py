"""Claims that live and go with their pods. Upstream: pkg/controller/volume/ephemeral.

A module belongs here if it makes what a pod's `ephemeral` volumes ask for.
"""
