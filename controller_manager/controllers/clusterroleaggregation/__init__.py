"""The controller of ClusterRoles that aggregate the rules of other ones.

A module belongs here if it aggregates rules. Upstream: pkg/controller/clusterroleaggregation.
"""
