"""Compares the output of a page with that of a command: less names, ages, addresses and widths of columns.

Pages show the output of many versions of Kubernetes and of its clients, and leave out lines. So a line that is shown is the same
if most of its words are printed on one line, and the lines that are printed and not shown do not matter.
"""

import re
from collections import Counter
from collections.abc import Iterable

from tests.support.documents.output_comparison import ALLOWANCES

SIMILAR = 0.6
"""The part of the words of a shown line that a printed line must have."""
_VALUES = (
    # Minors before 1.34 name the container.
    (r"(Created|Started) container:? .*", lambda match: f"Container {match[1].lower()}"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}(?:/\d+)?\b", "ADDRESS"),
    (r"(?i)\b(?:mon|tue|wed|thu|fri|sat|sun),? .*\d{4}( [+-]\d{4})?", "MOMENT"),
    (r"-[a-z0-9]{8,10}-[a-z0-9]{5}\b", "-RANDOM"),
    (r"-[a-z0-9]{5}\b(?=\s|$)", "-RANDOM"),
    (r"\b(?:kubernetes-node|node|worker|minikube|gke|kind|kubernetes-minion)[-\w.]*", "NODE"),
    (r"(?:sha256|docker|containerd|mockube)[:/]+\w+", "DIGEST"),
)


def missing_lines(shown: str, printed: str) -> list[str]:
    """Return the shown lines of which nothing similar is printed."""
    lines = [_words(line) for line in printed.splitlines()]
    return [
        line.strip()
        for line in shown.splitlines()
        if (words := _words(line)) and not any(_similarity(words, others) >= SIMILAR for others in lines)
    ]


def _similarity(words: Counter, others: Counter) -> float:
    return sum((words & others).values()) / sum(words.values())


def _words(line: str) -> Counter[str]:
    for pattern, instead in (*_VALUES, *((pattern, instead) for _, pattern, instead in ALLOWANCES)):
        line = re.sub(pattern, instead, line, flags=re.MULTILINE)
    return Counter(_without_ellipses(re.findall(r"[\w./:-]+", line)))


def _without_ellipses(words: Iterable[str]) -> list[str]:
    return [word for word in words if word.strip(".-:=")]
