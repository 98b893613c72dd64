"""The files of simulated containers.

A module belongs here if it makes files: those of every container, of its image, and of its volumes.
"""
