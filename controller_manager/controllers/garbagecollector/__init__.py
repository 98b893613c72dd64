"""The garbage collector: it deletes dependents without owners, and orphans the dependents of orphaning deletions.

A module belongs here if it is part of this controller, which handles owner references of all kinds.
"""
