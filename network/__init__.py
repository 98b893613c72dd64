"""The rules of a cluster's network: names, Services, NetworkPolicies, Ingresses. Pure.

A module belongs here if it decides where a connection leads, or whether it may, from objects of the API. Who asks, what a container
answers, and who carries the bytes is not its business.
"""
