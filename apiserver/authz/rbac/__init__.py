"""The RBAC authorizer: Roles, ClusterRoles and their bindings.

A module belongs here if it decides by them, or decides who may write them.
"""
