"""The recorded metric families of real components, and families read from an exposition."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.metric_samples import read_samples

RECORDED = Path(__file__).parents[2] / "conformance" / "golden" / "metric_families.json"

_TYPE = re.compile(r"# TYPE (\S+) (\S+)")
_HELP = re.compile(r"# HELP (\S+) (?:\[(\w+)\])?")


@dataclass
class _Family:
    type: str = ""
    stability: str = ""
    labels: set[str] = field(default_factory=set)
    buckets: list[str] = field(default_factory=list)


def read_families(text: str) -> dict[str, dict[str, Any]]:
    """Return the type, the stability, the names of the labels and the buckets of each family of an exposition."""
    families: dict[str, _Family] = {}
    current = _Family()
    for line in text.splitlines():
        if match := _HELP.match(line):
            current = families[match[1]] = _Family(stability=match[2] or "")
        elif match := _TYPE.match(line):
            current.type = match[2]
        for _, labels, _ in read_samples(line):
            bound = labels.pop("le", None)
            current.labels |= labels.keys()
            if bound is not None and bound not in current.buckets:
                current.buckets.append(bound)
    return {name: _as_dict(family) for name, family in families.items()}


def _as_dict(family: _Family) -> dict[str, Any]:
    found: dict[str, Any] = {"type": family.type, "labels": sorted(family.labels)}
    if family.stability:
        found["stability"] = family.stability
    if family.buckets:
        found["buckets"] = " ".join(family.buckets)
    return found
