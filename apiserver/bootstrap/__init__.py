"""The objects that every cluster has from its start.

A module belongs here if it lists objects that the server itself makes at its start, or makes them. They go through
the same verbs as everybody's: what is there already stays as it is, unless its row says that it follows the server.
"""
