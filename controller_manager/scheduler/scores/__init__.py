"""The score plugins, which rank the feasible nodes.

A module belongs here if it contains some of them; `profile` lists them all.
"""
