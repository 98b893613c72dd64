"""The names of members in a JSON pointer (RFC 6901)."""


def escape(name: str) -> str:
    """Return the name of a member as a part of a pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def unescape(part: str) -> str:
    """Return the name of a member that a part of a pointer stands for."""
    return part.replace("~1", "/").replace("~0", "~")
