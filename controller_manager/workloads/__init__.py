"""Code that several controllers and the scheduler share: ownership, revisions, hashes, volumes, slices, tolerations.

A module belongs here if several of them use it, and if it is pure.
"""
