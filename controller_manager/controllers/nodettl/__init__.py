"""The controller of the annotation for how long kubelets may cache Secrets and ConfigMaps.

A module belongs here if it calculates this time, or writes it to nodes.
"""
