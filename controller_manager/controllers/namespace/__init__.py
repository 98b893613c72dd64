"""The deletion of namespaces: first their content, then their finalizer.

A module belongs here if it is about that deletion.
"""
