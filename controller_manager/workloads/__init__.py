"""What controllers that own pods share: views, ranking, revisions, hashes.

A module belongs here if several of them ask for it, and if it is pure.
"""
