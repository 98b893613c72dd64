"""The API server.

A module belongs here if it takes part in serving Kubernetes requests.
"""
