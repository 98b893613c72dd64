"""The simulated machine of a node: its files, and the programs that only nodes have.

A module belongs here if it is about the machine itself, and not about a container on it.
"""
