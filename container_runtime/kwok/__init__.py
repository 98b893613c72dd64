"""Simulated containers of which kwok's objects replace logs, commands and ports by those of this machine.

A module belongs here if it is about what such an object says of a container.
"""
