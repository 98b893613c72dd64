"""Which tags of a repository can exist: its releases, and the variants of these."""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

_NUMBER: Final = re.compile(r"\d+")
_VERSION: Final = re.compile(r"(v?)(\d+(?:\.\d+)*)", re.ASCII)
_DATE: Final = 10_000
"""A number from here on, such as 20260803, is a date or the number of a build: none is too large."""
_NEW_MAJORS: Final = 2
_NEW_MINORS: Final = 10
_NEW_PATCHES: Final = 20
"""How many releases there may be that are newer than the newest known one."""


class Releases(
    Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """The tags of a repository. A tag is a version or a word, with words between dashes after it, as 1.29-alpine3.23-slim."""

    versions: tuple[str, ...] = ()
    """For each major version its newest minor version, with the largest number of a patch, such as 1.31.15. A tag begins with v
    if one of these does.
    """
    words: tuple[str, ...] = ()
    """All other parts of tags between dashes; # stands for a number, as in alpine#.#."""
    has_months: bool = False
    """Whether minor versions are months, which have two digits, as in 24.04."""
    is_final: bool = False
    """Whether there will be no newer ones."""

    def has(self, tag: str) -> bool:
        """Return whether a tag can exist: one of a version up to a few that are newer, or of known words."""
        first, *others = tag.split("-")
        words = _words(self.words)
        is_version = _VERSION.fullmatch(first)
        if not (self._has_version(first) if is_version else _shape(first) in words):
            return False
        return all(_shape(other) in words for other in others)

    def _has_version(self, text: str) -> bool:
        series, max_parts, prefixes = _series(self.versions)
        match = _VERSION.fullmatch(text)
        assert match is not None
        texts = match[2].split(".")
        if match[1] not in prefixes or len(texts) > max_parts or (text == "0" and 0 not in series):
            return False
        if self.has_months and texts[1:] and len(texts[1]) != len("04"):
            return False
        if any(len(part) > 1 and part.startswith("0") for part in texts) and not _has_zeros(self.versions):
            return False
        major, *rest = [int(part) for part in texts]
        newest = max(series)
        if major >= _DATE:
            return newest >= _DATE
        if major in series:
            minor, patch = series[major]
            news = (0, 0) if self.is_final else (_NEW_MINORS if major == newest else 0, _NEW_PATCHES)
            limits = (minor + news[0], patch + news[1])
        elif not self.is_final and newest < major <= newest + _NEW_MAJORS:
            limits = (_NEW_MINORS, _NEW_PATCHES)
        else:
            return False
        return all(
            number <= limit or number >= _DATE <= limit for number, limit in zip(rest, limits, strict=False)
        )


def _shape(part: str) -> str:
    return _NUMBER.sub("#", part)


@lru_cache(maxsize=1024)
def _words(words: tuple[str, ...]) -> frozenset[str]:
    return frozenset(words)


@lru_cache(maxsize=1024)
def _has_zeros(versions: tuple[str, ...]) -> bool:
    return any(len(part) > 1 and part.startswith("0") for version in versions for part in version.split("."))


@lru_cache(maxsize=1024)
def _series(versions: tuple[str, ...]) -> tuple[dict[int, tuple[int, int]], int, frozenset[str]]:
    """Return the newest minor and patch of each major version, the number of parts of the version with most parts, and the prefixes."""
    series: dict[int, tuple[int, int]] = {}
    max_parts, prefixes = 0, set()
    for version in versions:
        prefixes.add("v" if version.startswith("v") else "")
        numbers = [int(part) for part in version.removeprefix("v").split(".")]
        max_parts = max(max_parts, len(numbers))
        minor, patch = [*numbers[1:3], 0, 0][:2]
        known = series.get(numbers[0], (0, 0))
        series[numbers[0]] = (max(minor, known[0]), max(patch, known[1]))
    return series, max_parts, frozenset(prefixes)
