"""What of storage is deleted while it is in use: its finalizer keeps it until it is not.

A module belongs here if it decides whether something of storage is in use. Upstream: pkg/controller/volume/pvcprotection,
pvprotection and vacprotection.
"""
