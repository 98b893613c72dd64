"""The kinds of the core group.

A module belongs here if it describes one of them.
"""
