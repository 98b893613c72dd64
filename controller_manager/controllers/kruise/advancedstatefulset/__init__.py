"""Advanced StatefulSets (`apps.kruise.io`): sets whose pods may be updated in place, out of order and several at a time.

A module belongs here if it is about a difference to other StatefulSets; what all have in common is
`workloads.stateful`. Upstream: OpenKruise, pkg/controller/statefulset.
"""
