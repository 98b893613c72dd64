"""A subset of a POSIX shell over the environment and the files of a simulated container.

A module belongs here if it parses or interprets a command. A command is a generator that yields its writes, reads and
sleeps, so the same command gives a container's run time, its logs, and the output of an exec. No I/O, no event loop.
"""
