"""The score plugins, which rank the feasible nodes.

A module belongs here if it contains some of them; `in_tree` lists them all.
"""
