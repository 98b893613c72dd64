"""What the author of a Change says of a write besides the user."""

from collections.abc import Mapping


def verb_of(author: Mapping[str, str]) -> str:
    """Return the verb, with the subresource if there is one."""
    return "/".join(filter(None, (author.get("verb"), author.get("subresource"))))


def program_of(author: Mapping[str, str]) -> str:
    """Return the field manager, or else the beginning of the User-Agent."""
    return author.get("manager") or author.get("agent", "").partition(" ")[0]
