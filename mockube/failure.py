"""Failures of commands: one line, with what to do next.

Whatever is raised here reaches the terminal as `mockube: ...`; the exit codes stand in `mockube/cli/output.py`.
"""


class Failure(Exception):
    """It could not be done."""


class UsageError(Failure):
    """The command line is invalid."""


class Missing(Failure):
    """What it is about does not exist."""


class TimedOut(Failure):
    """The condition did not hold in time."""
