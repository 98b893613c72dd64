"""Kinds of networking.k8s.io.

A module belongs here if it holds the rules of a few of them. Services are in a package of their own.

policies    NetworkPolicies          ingresses    Ingresses and their classes
addresses   the addresses of Services
"""
