"""The kinds of policy.

A module belongs here if it describes one of them.
"""
