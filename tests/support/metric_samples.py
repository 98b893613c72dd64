"""The samples of a registry as a scrape shows them."""

import re

from mockube.component_base.exposition import metrics_text

_SAMPLE = re.compile(r"([\w:]+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)')


def samples(collected):
    """Return the value of each sample, by its name and its labels as pairs."""
    found = {}
    for line in metrics_text(collected).decode().splitlines():
        if not line.startswith("#"):
            name, labels, value = _SAMPLE.fullmatch(line).groups()
            found[name, frozenset(_LABEL.findall(labels or ""))] = float(value)
    return found


def sample_value(registry, name, labels=()):
    """Return the value of a sample; None if there is none."""
    return samples(registry.collect()).get((name, frozenset(dict(labels).items())))
