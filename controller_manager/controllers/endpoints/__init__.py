"""The Endpoints of every service that selects pods. Upstream: pkg/controller/endpoint.

A module belongs here if it makes Endpoints of what is there.
"""
