"""JSON schemas of custom resources: validation with kube-openapi's messages, pruning, and CEL rules.

A module belongs here if it needs a schema and a value, but no resource.
"""
