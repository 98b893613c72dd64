"""The UnitedDeployment controller: it spreads pods over subsets of the nodes, with one workload for each subset.

A module belongs here if it is the same for all kinds of workloads; the differences of one kind are in `adapters`.
"""
