"""The controller that deletes namespaces: first their content, then their finalizer.

A module belongs here if it is part of this deletion.
"""
