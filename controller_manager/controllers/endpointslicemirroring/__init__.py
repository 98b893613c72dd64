"""EndpointSlices of user-managed Endpoints, for services without a selector.

Upstream: pkg/controller/endpointslicemirroring. A module belongs here if it takes part in that.
"""
