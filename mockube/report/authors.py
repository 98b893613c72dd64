"""Who wrote: a user with a program, and whether that is a part of the control plane."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.explanations.facts import is_component
from mockube.history.authors import program_of

_ACCOUNTS: Final = "system:serviceaccount:"


class Author(NamedTuple):
    user: str
    program: str

    @classmethod
    def of(cls, change: ReadOnlyTree) -> "Author":
        author: Mapping[str, str] = change.get("author") or {}
        return cls(author.get("user", ""), program_of(author))

    def __str__(self) -> str:
        if not self.user:
            return "(not known)"
        return f"{self.user} ({self.program})" if self.program not in ("", self.user) else self.user


def is_component_author(user: str) -> bool:
    """Return whether the author of a write is a part of the control plane, or a node; one that is not known counts as one."""
    return not user or is_component(user)


def rank_of(user: str) -> int:
    """Return the place of a user in a list of authors: people, programs with accounts of their own, the control plane."""
    return 2 if is_component_author(user) else 1 if user.startswith(_ACCOUNTS) else 0
