"""The Advanced StatefulSet controller (`apps.kruise.io`): pods may be updated in place, out of order and concurrently.

A module belongs here if it implements a difference from other StatefulSets; common code is in
`workloads.stateful`. Upstream: OpenKruise, pkg/controller/statefulset.
"""
