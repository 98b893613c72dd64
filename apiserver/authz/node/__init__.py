"""The Node authorizer: what a kubelet may do, by what the pods of its node refer to.

A module belongs here if it decides about node users, or knows what objects refer to.
"""
