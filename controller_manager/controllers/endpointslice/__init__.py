"""The EndpointSlices of every service that selects pods. Upstream: pkg/controller/endpointslice.

A module belongs here if it makes slices of what is there. Slices of another manager are not touched; slices of an older
service of the same name go.
"""
