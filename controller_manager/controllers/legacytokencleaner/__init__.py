"""The controller that deletes unused tokens in Secrets, which Kubernetes before 1.24 generated for service accounts.

A module belongs here if it decides which of these Secrets are deleted.
"""
