"""Claims that ask for more than they have: who is to make their volumes larger.

A module belongs here if it decides that. What makes them larger is the driver's own. Upstream:
pkg/controller/volume/expand.
"""
