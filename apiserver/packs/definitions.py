"""The definitions of each pack, as the YAML that they are written in."""

from collections.abc import Mapping, Sequence
from pkgutil import get_data
from types import MappingProxyType
from typing import Final

PACKS: Final[Mapping[str, Sequence[str]]] = MappingProxyType(
    {"kruise": ("clonesets", "statefulsets", "uniteddeployments")}
)
"""The documents of each pack: one for each resource, named after it."""


def definitions(pack: str) -> Sequence[bytes]:
    """Return a YAML document for each CustomResourceDefinition; raise KeyError if there is no such pack."""
    return [_read(f"{pack}/{name}.yaml") for name in PACKS[pack]]


def _read(path: str) -> bytes:
    text = get_data(__package__, path)
    assert text is not None, "the package is installed where its files can be read"
    return text
