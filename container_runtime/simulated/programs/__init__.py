"""The commands of simulated containers.

A module belongs here if it computes what a command of a container does as a whole: how long it runs, its exit code, what it logs, and
whether that is known before. Programs such as `grep`, which a command calls, are in `shell/programs/`.
"""
