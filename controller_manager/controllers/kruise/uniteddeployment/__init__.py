"""The UnitedDeployment controller: pods spread over subsets of the nodes, by a workload of another kind for each subset.

What is the same for all kinds of workloads belongs here; what one kind differs in belongs to `adapters`.
"""
