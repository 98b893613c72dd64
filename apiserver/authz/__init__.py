"""The authorizers.

A module belongs here if it decides whether a user may send a request, or is the chain that calls one authorizer after
another.
"""
