"""Tokens of OpenID Connect issuers: JSON Web Tokens of other servers, and their users.

A module belongs here if it implements the `jwt` of an AuthenticationConfiguration, or reads what an issuer publishes.
"""
