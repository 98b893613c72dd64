"""What the server tells of itself.

A module belongs here if it makes metrics or audit events of what happens elsewhere, and decides nothing.
"""
