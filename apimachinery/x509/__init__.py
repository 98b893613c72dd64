"""X.509 certificates as Go's package crypto/x509 parses and verifies them, with its error messages.

A module belongs here if it decides whether a chain of certificates is trusted. It opens no connection, and the time
is an argument; only `system_roots` reads files. OpenSSL decides differently in many cases: see docs/decisions/0025-certificate-verification.md.
"""
