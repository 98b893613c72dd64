"""Warnings as headers: each once, and limited in number and length."""

import re
from collections.abc import Collection, Sequence
from typing import Final

import orjson

TOTAL: Final = 4096
"""Characters of all warnings together. If there are more, each is cut, and the rest is dropped when that many were sent."""
EACH: Final = 256
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Characters that a header cannot have: a warning with one is dropped."""


def warning_headers(warnings: Collection[str]) -> Sequence[bytes]:
    return (
        [b"Warning: 299 - %b\r\n" % orjson.dumps(text) for text in fit_warnings(warnings)] if warnings else ()
    )


def fit_warnings(warnings: Collection[str]) -> Sequence[str]:
    """Return the warnings that fit; those before the limit are cut, later ones dropped."""
    texts = [text for text in dict.fromkeys(warnings) if text and not _CONTROL.search(text)]
    total = 0
    for count, text in enumerate(texts, 1):
        total += len(text)
        if total > TOTAL:
            return _cut(texts, count)
    return texts


def _cut(texts: Sequence[str], least: int) -> Sequence[str]:
    cut_texts = [text[:EACH] for text in texts[:least]]
    total = sum(map(len, cut_texts))
    for text in texts[least:]:
        if total >= TOTAL:
            break
        cut_texts.append(text[:EACH])
        total += len(cut_texts[-1])
    return cut_texts
