"""The samples of an exposition, and those of a registry as a scrape shows them."""

import re
from collections.abc import Iterator

from mockube.component_base.exposition import metrics_text

_SAMPLE = re.compile(r"([\w:]+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)')


def read_samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Yield the name, the labels and the value of each sample of an exposition; a label's value is not unescaped."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match is not None, line
            yield match[1], dict(_LABEL.findall(match[2] or "")), float(match[3])


def samples(collected):
    """Return the value of each sample, by its name and its labels as pairs."""
    text = metrics_text(collected).decode()
    return {(name, frozenset(labels.items())): value for name, labels, value in read_samples(text)}


def sample_value(registry, name, labels=()):
    """Return the value of a sample; None if there is none."""
    return samples(registry.collect()).get((name, frozenset(dict(labels).items())))
