"""Authentication: one file for each authenticator, and the chain of them.

A module belongs here if it authenticates a request by one kind of credentials.
"""
