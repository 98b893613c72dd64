"""Tokens of service accounts: signed claims about the account, the audiences and the bound object.

A module belongs here if it issues or validates such tokens, or publishes how they can be validated.
"""
