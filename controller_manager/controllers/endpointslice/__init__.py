"""The controller of the EndpointSlices of services that select pods. Upstream: pkg/controller/endpointslice.

A module belongs here if it is part of this controller. It does not change slices of another manager, and deletes slices
of an older service with the same name.
"""
