"""Kinds of networking.k8s.io.

policies    NetworkPolicies          ingresses    Ingresses and their classes
addresses   the addresses of Services
"""
