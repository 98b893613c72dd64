"""The commands of simulated containers.

A module belongs here if it computes what a command does: how long it runs, its exit code, what it logs, and whether that is known before.
"""
