"""Unused tokens in Secrets that were generated for service accounts, as before Kubernetes 1.24.

A module belongs here if it decides which of them to delete.
"""
