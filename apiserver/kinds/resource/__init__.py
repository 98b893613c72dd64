"""The kinds of resource.k8s.io: dynamic resource allocation. CEL selectors are not compiled.

A module belongs here if it describes one of them, or what several share. How a pod refers to its claims is in
`kinds/core/pod/`.
"""
