"""The controller that mirrors user-managed Endpoints into EndpointSlices, for services without a selector.

Upstream: pkg/controller/endpointslicemirroring. A module belongs here if it mirrors Endpoints.
"""
