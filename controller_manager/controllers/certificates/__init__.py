"""The controllers of CertificateSigningRequests: automatic approval, signing, and cleanup, also of PodCertificateRequests.

A module belongs here if it decides about such requests or issues certificates. Upstream:
pkg/controller/certificates.
"""
