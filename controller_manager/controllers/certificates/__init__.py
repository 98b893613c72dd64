"""The controllers of CertificateSigningRequests: automatic approval, signing, and cleanup.

A module belongs here if it decides about such requests or issues certificates. Upstream:
pkg/controller/certificates.
"""
