"""The controller of the Endpoints of services that select pods. Upstream: pkg/controller/endpoint.

A module belongs here if it is part of this controller.
"""
