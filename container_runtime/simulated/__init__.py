"""The simulated runtime: programs that are functions over simulated files, streams and connections.

A module belongs here if it is a part of a simulated container, or of the network between them.
"""
