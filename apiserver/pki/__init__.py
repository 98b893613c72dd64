"""Keys and certificates: the cluster's own authority, and the certificates that it signs.

A module belongs here if it creates, checks or stores them. `authn/` maps a certificate to a user.
"""
