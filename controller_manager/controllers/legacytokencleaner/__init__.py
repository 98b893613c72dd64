"""Tokens in Secrets that were made for service accounts by themselves, as before Kubernetes 1.24, and that nobody uses.

A module belongs here if it decides which of them go.
"""
