"""Secrets of type kubernetes.io/service-account-token: their tokens, and what refers to them.

A module belongs here if it fills in such Secrets or deletes them. The API server validates tokens.
"""
