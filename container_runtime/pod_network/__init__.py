"""The network of pods whose containers run as processes: a network namespace for each pod, and one that connects them.

A module belongs here if it makes the network from what the kernel offers. Where a connection leads, and whether a policy
allows it, is decided elsewhere (`decisions.Decide`).
"""
