"""Service, and the Endpoints behind it.

A module belongs here if it describes one of them, or a part of a Service. EndpointSlices are in `discovery/`.
"""
