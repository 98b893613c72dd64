"""The RBAC authorizer: Roles, ClusterRoles and their bindings.

A module belongs here if it authorizes by them, or restricts who may write them.
"""
