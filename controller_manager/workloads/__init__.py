"""What controllers that own pods share: views, ranking, revisions, hashes.

A module belongs here if several of them use it, and if it is pure.
"""
