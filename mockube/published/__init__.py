"""The URLs of what a cluster publishes on this machine, for its users.

A module belongs here if it finds or names them. What listens there is `publisher`.
"""
