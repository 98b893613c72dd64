"""The objects that every cluster has from its start.

A module belongs here if it lists or creates objects that the server itself creates at its start. Existing objects are
not changed, unless they are reconciled.
"""
