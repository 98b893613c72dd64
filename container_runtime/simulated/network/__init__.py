"""The simulated network of a cluster: names, Services, NetworkPolicies, Ingresses. Pure.

A module belongs here if it decides where a connection of a pod leads, or whether it may, from objects of the API. Who asks,
and what a container answers, are not its business.
"""
