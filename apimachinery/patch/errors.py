"""The errors of patches, one class for each cause, with kube-apiserver's messages.

The HTTP layer maps each class to a status: 400 for `UndecodablePatch`, 413 for `TooManyOperations`, 422 for `PatchNotApplicable`,
409 for `apply.Conflicts`, and 500 for the rest, for which upstream has no reason.
"""


class PatchError(Exception):
    """The base class of the errors of patches."""


class UndecodablePatch(PatchError):
    """A patch cannot be decoded as its content type requires."""


class TooManyOperations(PatchError):
    """A JSON patch has too many operations."""

    def __init__(self, limit: int, count: int) -> None:
        super().__init__(f"The allowed maximum operations in a JSON patch is {limit}, got {count}")


class PatchNotApplicable(PatchError):
    """A valid patch cannot be applied to this object."""


class TestFailed(PatchNotApplicable):
    """A `test` operation of a JSON patch failed."""


class Unmergeable(PatchError):
    """A strategic merge patch contradicts the type of the object."""
