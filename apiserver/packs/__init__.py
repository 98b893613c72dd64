"""What the makers of a pack's kinds do in webhooks, done inside this server: defaults, and rules beyond the schemas.

A module belongs here if it knows kinds of a pack. What is done with every custom resource is in `crd/`.
"""
