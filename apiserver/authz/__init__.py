"""Who may do what.

A module belongs here if it decides whether a user may make a request, or is the chain that asks one authorizer after
another.
"""
