"""Elect a leader among several managers by a Lease, as client-go's leaderelection.

A module belongs here if it acquires, renews or releases that Lease.
"""
