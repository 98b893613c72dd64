"""Elect one of several managers by a Lease, and run work only while it is held.

A module belongs here if it concerns the Lease that managers compete for.
"""
