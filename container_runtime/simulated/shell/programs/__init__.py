"""The programs of a simulated container: those of busybox and coreutils that are common in pods, and agnhost.

A module belongs here if it simulates programs: it does not parse or execute scripts.
"""
