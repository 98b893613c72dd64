"""Keys and certificates: the cluster's own authority, and what it signs.

A module belongs here if it makes, checks or keeps them. Who a certificate stands for is decided in `authn/`.
"""
