"""Whether a name was meant to be another one: one word of it is misspelt. Pure."""

import re
from collections.abc import Iterable
from typing import Final

_WORDS: Final = re.compile(r"[^-._/]+")
_SEPARATORS: Final = re.compile(r"[-._]+")
_SHORT_WORD, _LONG_WORD = 3, 8
"""Words that are shorter have no misspellings; from the length of a long one on, two letters may be wrong."""


def misspelt_as(name: str, candidates: Iterable[str]) -> str:
    """Return the candidate of which a name is a misspelling; "" if there is none."""
    return next((each for each in candidates if is_misspelling(name, each)), "")


def is_misspelling(name: str, other: str) -> bool:
    """Return whether two names differ in one word by a letter or two, in case, or in their separators.

    Numbers are no letters: `web-1` and `web-2` are two names.
    """
    if name == other:
        return False
    if _SEPARATORS.sub("", name).lower() == _SEPARATORS.sub("", other).lower():
        return True
    words, others = _WORDS.findall(name), _WORDS.findall(other)
    if len(words) != len(others):
        return False
    different = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return len(different) == 1 and _is_misspelt_word(*different[0])


def _is_misspelt_word(word: str, other: str) -> bool:
    length = min(len(word), len(other))
    if length < _SHORT_WORD or any(map(str.isdigit, word + other)):
        return False
    if {word, other} in ({f"{word}s", word}, {f"{other}s", other}):
        return True
    return _distance(word, other, 2 if length >= _LONG_WORD else 1) <= (2 if length >= _LONG_WORD else 1)


def _distance(word: str, other: str, limit: int) -> int:
    """Return how many letters are wrong, missing, surplus or swapped with the next one; more than the limit if it is far more."""
    if abs(len(word) - len(other)) > limit:
        return limit + 1
    before_last: list[int] = []
    last: list[int] = [*range(len(other) + 1)]
    for i, letter in enumerate(word, 1):
        row: list[int] = [i]
        for j, other_letter in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other_letter))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == other_letter:
                cost = min(cost, before_last[j - 2] + 1)
            row.append(cost)
        before_last, last = last, row
    return last[-1]
