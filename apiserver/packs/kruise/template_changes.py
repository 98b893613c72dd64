"""How one tree became another, told as the operations of a JSON patch: `replace /containers/0/image`."""

import re
from collections.abc import Iterator
from typing import Any


def first_change_but(allowed: re.Pattern[str], old: Any, new: Any) -> str:
    """The first operation that does not replace what is allowed to be; "" if there is none."""
    changes = _changes(old, new, "")
    return next(
        (f"{kind} {path}" for kind, path in changes if kind != "replace" or not allowed.search(path)), ""
    )


def _changes(old: Any, new: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            at = f"{path}/{name}"
            if name not in new:
                yield "remove", at
            elif name not in old:
                yield "add", at
            else:
                yield from _changes(old[name], new[name], at)
    elif isinstance(old, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _changes(one, other, f"{path}/{index}")
        yield from (("add", f"{path}/{index}") for index in range(len(old), len(new)))
        yield from (("remove", f"{path}/{index}") for index in range(len(new), len(old)))
    elif old != new:
        yield "replace", path
