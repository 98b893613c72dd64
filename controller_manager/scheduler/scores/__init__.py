"""The score plugins: which of the feasible nodes is best.

A module belongs here if it is one of them; `score` lists them all.
"""
