"""JSON schemas of custom resources: whether a value is valid, with the messages of kube-openapi.

A module belongs here if it takes a schema and a value, and knows no resource.
"""
