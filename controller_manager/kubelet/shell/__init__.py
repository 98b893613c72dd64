"""A subset of a POSIX shell over the environment and the files of a simulated container.

What belongs here reads or interprets a command. A command is a generator: it yields what it writes, reads and waits for,
so the same command tells how long a container runs, what it has logged, and what an exec answers. No I/O, no event loop.
"""
