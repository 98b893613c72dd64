"""Errors of commands. The message is one line and says what to do next.

The command line prints them as `mockube: ...`; `mockube/cli/output.py` has the exit codes.
"""


class Failure(Exception):
    """The command failed."""


class UsageError(Failure):
    """The command line is invalid."""


class UnknownCommand(UsageError):
    """The command is none of mockube. The message may have several lines: what to type instead."""


class Missing(Failure):
    """The object of the command does not exist."""


class TimedOut(Failure):
    """The condition did not hold in time."""
