"""Warnings as headers: each told once, and no more of them than clients can be expected to read."""

import re
from collections.abc import Collection, Sequence
from typing import Final

import orjson

TOTAL: Final = 4096
"""Characters of all warnings together. If there are more, each is cut, and when that many were told it is enough."""
EACH: Final = 256
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""What cannot stand in a header: a warning with one is not told."""


def warning_headers(warnings: Collection[str]) -> Sequence[bytes]:
    return (
        [b"Warning: 299 - %b\r\n" % orjson.dumps(text) for text in fit_warnings(warnings)] if warnings else ()
    )


def fit_warnings(warnings: Collection[str]) -> Sequence[str]:
    """What fits; all that came until it was too much is told, though cut."""
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
