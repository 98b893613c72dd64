"""The API server.

A module belongs here if it takes part in answering a Kubernetes request.
"""
