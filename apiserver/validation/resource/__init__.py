"""Kinds of resource.k8s.io: devices, and claims to them. Expressions are not looked into.

claims    claims, templates of them, and DeviceClasses    slices    ResourceSlices
values    what both are made of                           status    what a claim was given
"""
