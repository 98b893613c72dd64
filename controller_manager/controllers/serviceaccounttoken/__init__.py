"""The controller of Secrets with the type kubernetes.io/service-account-token: their tokens, and references to them.

A module belongs here if it fills in or deletes such Secrets. The API server validates tokens.
"""
