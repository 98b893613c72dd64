"""The filter plugins, which reject nodes that are not feasible for a pod.

A module belongs here if it contains some of them; `in_tree` lists them all.
"""
