"""What a change changed, as messages of kube-apiserver tell it: line by line, in its internal types."""

from collections.abc import Mapping
from difflib import unified_diff
from itertools import islice
from typing import Any, Final

from apimachinery import gotext
from apiserver.validation.internal import internal
from apiserver.validation.rules import Tree

_NAMES_OF_FILES: Final = 2
"""The lines that every difference begins with, and that mean nothing here."""


def difference(struct: str, old: Tree, new: Tree) -> str:
    """Between two trees of the internal type of that name, such as `core.PodSpec`."""
    lines = unified_diff(_lines(internal(struct, old)), _lines(internal(struct, new)))
    return "".join(islice(lines, _NAMES_OF_FILES, None))


def _lines(shown: Mapping[str, Any]) -> list[str]:
    return [f"{line}\n" for line in gotext.marshal_indent(shown).split("\n")]
