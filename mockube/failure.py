"""What can go wrong in front of a person: told in one line, which says what to do as well.

Whatever is raised here reaches the terminal as `mockube: ...`; the exit codes stand in `mockube/cli/output.py`.
"""


class Failure(Exception):
    """It could not be done."""


class UsageError(Failure):
    """It was asked for in a way that makes no sense."""


class Missing(Failure):
    """What it is about does not exist."""


class TimedOut(Failure):
    """It did not come about in time."""
