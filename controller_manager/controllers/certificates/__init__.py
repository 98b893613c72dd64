"""CertificateSigningRequests: which are approved without a person, how they are signed, and when they are removed.

A module belongs here if it decides about such a request or makes a certificate of it. Upstream:
pkg/controller/certificates.
"""
