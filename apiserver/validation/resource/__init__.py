"""Kinds of resource.k8s.io: devices, and claims to them. Expressions are not looked into.

A module belongs here if it holds rules of kinds of resource.k8s.io, or what these are made of. How a pod refers to
its claims is in `pods/`.

claims    claims, templates of them, classes    requests    what a claim asks for
slices    ResourceSlices                        status      what a claim was given
values    what claims and slices are made of
"""
