"""The garbage collector: what has lost its owners goes, and what is to outlive them is let go.

A module belongs here if it is about who owns whom, of whatever kind.
"""
