"""The printers of the core group.

A module belongs here if it holds printers of kinds of that group which go together.
"""
