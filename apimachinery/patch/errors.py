"""The errors of patches, one class for each cause. The messages are kube-apiserver's.

The HTTP layer maps a class to a status: 400 for `Undecodable`, 413 for `TooManyOperations`, 422 for `PatchNotApplicable`,
409 for `apply.Conflicts`, and 500 for the rest, for which upstream has no reason of its own.
"""


class PatchError(Exception):
    """The root of everything a patch raises on purpose."""


class Undecodable(PatchError):
    """The patch is not of its content type."""


class TooManyOperations(PatchError):
    """A JSON patch of too many operations."""

    def __init__(self, limit: int, count: int) -> None:
        super().__init__(f"The allowed maximum operations in a JSON patch is {limit}, got {count}")


class PatchNotApplicable(PatchError):
    """The patch is well formed, but cannot be carried out on this object."""


class TestFailed(PatchNotApplicable):
    """An operation of a JSON patch found another value than it expected."""


class Unmergeable(PatchError):
    """The patch contradicts the type of what it changes."""
