"""Who asks.

A module belongs here if it finds out a request's user, or is the chain that asks one authenticator after another.
"""
