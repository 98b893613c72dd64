"""Authenticators, one per file, and the chain that calls them.

A module belongs here if it authenticates a request by one kind of credentials.
"""
