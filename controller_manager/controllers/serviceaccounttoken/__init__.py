"""Secrets of type kubernetes.io/service-account-token: their tokens, and what refers to them.

A module belongs here if it fills such Secrets in or takes them away. Whether a token holds is the API server's to say.
"""
