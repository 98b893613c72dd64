"""Tokens of OpenID Connect issuers: JSON Web Tokens that others sign, and whom they stand for.

A module belongs here if it knows an AuthenticationConfiguration's `jwt`, or what an issuer publishes.
"""
