"""Two texts that are compared, on a line."""

from typing import Final

_MARK: Final = "..."


def shortened_pair(before: str, after: str, limit: int) -> tuple[str, str]:
    """Return two texts in at most `limit` characters each: of long ones, the part where they first differ."""
    if len(before) <= limit and len(after) <= limit:
        return before, after
    pairs = enumerate(zip(before, after, strict=False))
    common = next((index for index, (a, b) in pairs if a != b), min(len(before), len(after)))
    begin = common - limit // 3 if common > limit // 2 else 0
    return _part(before, begin, limit), _part(after, begin, limit)


def _part(text: str, begin: int, limit: int) -> str:
    part = f"{_MARK}{text[begin + len(_MARK) :]}" if begin else text
    return part if len(part) <= limit else f"{part[: limit - len(_MARK)]}{_MARK}"
