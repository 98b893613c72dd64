"""The filter plugins: which nodes are feasible for a pod.

A module belongs here if it is one of them; `filter` lists them all.
"""
