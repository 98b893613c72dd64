"""The kinds of storage.k8s.io.

A module belongs here if it describes one of them.
"""
