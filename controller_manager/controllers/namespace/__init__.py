"""Namespaces that are being deleted: their content goes, then their finalizer.

A module belongs here if it is about their end.
"""
