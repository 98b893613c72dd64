"""The connections of simulated containers.

A module belongs here if it opens a connection to a port, or answers on one.
"""
