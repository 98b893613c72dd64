"""Service.

A module belongs here if it describes a part of a Service. Endpoints are in `core/`, EndpointSlices in `discovery/`.
"""
