"""The EndpointSlices of every service that selects pods. Upstream: pkg/controller/endpointslice.

Slices of another manager are not touched; slices of an older service of the same name go.
"""
