"""The rules of ClusterRoles that are made of the rules of others.

A module belongs here if it gathers them. Upstream: pkg/controller/clusterroleaggregation.
"""
