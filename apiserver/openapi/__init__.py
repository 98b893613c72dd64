"""OpenAPI, versions 2 and 3: what kinds are made of and what may be done with them, for explain, validation and apply.

A module belongs here if it makes these documents out of definitions and rows of resources. Nothing is made before it
is asked for.
"""
