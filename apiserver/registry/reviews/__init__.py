"""Resources that are not stored: a client creates a review, and the response has its status.

A module belongs here if it serves such a review of authentication, authorization or a token request.
"""
