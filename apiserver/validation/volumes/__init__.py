"""Volumes, wherever they are declared: in pods, on their own, and claims to them.

A module belongs here if it holds the rules of sources of volumes or of claims to them. What a container does with a
volume is in `pods/`.

    sources     every source of a volume in a pod        legacy     those of old whose rules are long
    projected   the source that puts others together     files      which keys become which files
    claims      claims, and templates of them
"""
