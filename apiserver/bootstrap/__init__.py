"""The objects that every cluster has from its start.

A module belongs here if it lists objects that the server itself makes at its start, or makes them. They go through
the same verbs as any client: existing objects stay as they are, unless their row follows the server.
"""
