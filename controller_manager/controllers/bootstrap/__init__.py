"""Bootstrap tokens, by which nodes join: what they sign, and their end.

A module belongs here if it reads the Secrets of these tokens.
"""
