"""Kinds of resource.k8s.io: devices, and claims to them. Expressions are not looked into.

claims    claims, templates of them, classes    requests    what a claim asks for
slices    ResourceSlices                        status      what a claim was given
values    what claims and slices are made of
"""
