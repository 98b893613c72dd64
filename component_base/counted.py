"""Numbers of things in messages."""


def counted(count: int, one: str, many: str) -> str:
    """Return a number with the words for one thing, or those for many: `1 pod is`, `2 pods are`."""
    return f"{count} {one if count == 1 else many}"
