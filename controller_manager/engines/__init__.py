"""Controllers that must ask the server while they decide: garbage, namespaces, accounts, nodes.

A module belongs here if it is an `Engine` that a real cluster has as well, or a part of one.
"""
