"""The order of versions by their names: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then all others by the alphabet."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_MATURITY: Final = {None: 0, "beta": 1, "alpha": 2}


def by_maturity(versions: Iterable[str]) -> Sequence[str]:
    return sorted(versions, key=_rank)


def _rank(version: str) -> tuple[int, int, int, str]:
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_MATURITY), 0, 0, version
    major, stage, minor = match.groups()
    return _MATURITY[stage], -int(major), -int(minor or 0), version
