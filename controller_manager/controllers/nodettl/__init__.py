"""How long kubelets may keep what they have read of Secrets and ConfigMaps, by the number of nodes.

A module belongs here if it decides on that time, or writes it to nodes.
"""
