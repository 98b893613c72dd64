"""The kinds of storagemigration.k8s.io.

A module belongs here if it describes one of them.
"""
