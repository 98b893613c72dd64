"""Names that no registry has an image for: short ones that are nearly the name of an official image, such as ngnix, and names that say
themselves that nothing has them, such as does-not-exist.

A name that people give their own images, such as app or registrar, is neither, even if it is near to an official one.
"""

import re
from collections.abc import Collection
from typing import Final

_WORDS: Final = frozenset(
    {
        "backdrop", "bonita", "caddy", "celery", "composer", "consul", "convertigo", "crate", "docker", "elixir", "gazebo", "ghost",
        "gradle", "groovy", "hitch", "jetty", "jobber", "julia", "known", "maven", "monica", "notary", "photon", "rails", "registry",
        "sentry", "spark", "spiped", "storm", "swarm", "swift", "telegraf", "thrift", "varnish", "vault",
    }
)  # fmt: skip
"""Official images that other words are near to."""
_OWN: Final = frozenset(
    {
        "fluent", "helloworld", "http", "https", "httpx", "mango", "moon", "mssql", "nosql", "pythons",
    }
)  # fmt: skip
"""Plausible names of other images that are near to an official one."""
_ALIASES: Final = frozenset({"apache", "apache2", "jdk", "mongodb", "mosquitto", "nodejs", "postgresql"})
"""Names that people use for official images, which have other names."""
_MISSING: Final = re.compile(
    r"non-?exist|(does-?no?t|not)-?exist|no-?such-?(image|registry|repo|tag)|not-?a-?real|"
    r"(bogus|fake|invalid|missing|wrong)-?(image|registry|repo|tag)|(image|registry|tag)-?(missing|not-?found)"
)
_SHORTEST, _ANY_EDIT, _TWO_EDITS = 4, 5, 8
"""The lengths of official names from which on a swap or a repetition of letters, one other edit, and two edits are mistakes."""


def is_mistaken(name: str, official: Collection[str]) -> bool:
    """Return whether a name is nearly one of those of official images, and not plausible as the name of another image."""
    if "/" in name or name in official or name in _OWN:
        return False
    if name in _ALIASES:
        return True
    base = name.rstrip("0123456789")
    if base != name and len(base) >= _SHORTEST and base in official:
        return True
    return any(_is_near(name, other) for other in official if abs(len(name) - len(other)) <= 2)


def is_named_missing(name: str) -> bool:
    """Return whether a host, a path or a tag says that it does not exist, as those in examples of failing pulls do."""
    return _MISSING.search(name.replace("_", "-")) is not None


def _is_near(name: str, official: str) -> bool:
    if len(official) < _SHORTEST:
        return False
    if _is_swapped(name, official) or _without_repetitions(name) == _without_repetitions(official):
        return True
    if official in _WORDS or len(official) < _ANY_EDIT or name[0] != official[0]:
        return False
    return _distance(name, official) <= (2 if len(official) >= _TWO_EDITS else 1)


def _is_swapped(name: str, official: str) -> bool:
    """Return whether two neighbouring letters are exchanged."""
    if len(name) != len(official):
        return False
    places = [place for place, pair in enumerate(zip(name, official, strict=True)) if pair[0] != pair[1]]
    if len(places) != 2 or places[1] != places[0] + 1:
        return False
    return name[places[0]] == official[places[1]] and name[places[1]] == official[places[0]]


def _without_repetitions(name: str) -> str:
    return "".join(letter for place, letter in enumerate(name) if not place or name[place - 1] != letter)


def _distance(first: str, second: str) -> int:
    """Return how many insertions, deletions, replacements and exchanges of neighbours make one text of the other."""
    before: list[int] = []
    row = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        before, last, row = row, before, [i]
        for j, other in enumerate(second, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
