"""Tokens of OpenID Connect issuers: JSON Web Tokens of other servers, and their users.

A module belongs here if it knows an AuthenticationConfiguration's `jwt`, or what an issuer publishes.
"""
