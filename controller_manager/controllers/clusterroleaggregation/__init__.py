"""The rules of ClusterRoles that aggregate the rules of others.

A module belongs here if it aggregates them. Upstream: pkg/controller/clusterroleaggregation.
"""
