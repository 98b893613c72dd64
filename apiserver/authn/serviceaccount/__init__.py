"""Tokens of service accounts: signed claims of who is asking, for whom, and bound to what.

A module belongs here if it makes or checks such tokens, or tells others how they can be checked.
"""
