"""The Node authorizer: a kubelet may read what the pods of its node refer to.

A module belongs here if it authorizes node users, or reads the references of objects.
"""
