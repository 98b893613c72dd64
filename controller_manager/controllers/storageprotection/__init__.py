"""The controllers of the finalizers that protect claims, volumes and volume attributes classes in use.

A module belongs here if it decides whether such an object is in use. Upstream: pkg/controller/volume/pvcprotection,
pvprotection and vacprotection.
"""
