"""The garbage collector: it deletes dependents without owners, and orphans dependents that are to stay.

A module belongs here if it is about owner references of any kind.
"""
