"""The values of Secrets, which Changes mask, as digests: they are compared, and nothing shows them."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree

SECRET: Final = "Secret"  # noqa: S105 - a kind
_FIELDS: Final[Mapping[str, str]] = {SECRET: "data"}
"""The field with the secret values of a kind."""


def digested(tree: ReadOnlyTree) -> ReadOnlyTree:
    """Return an object; of a Secret with a digest in place of each value."""
    field = _FIELDS.get(tree.get("kind", ""), "")
    values: Mapping[str, Any] = tree.get(field) or {}
    if not values:
        return tree
    return {**tree, field: {name: sha256(str(value).encode()).hexdigest() for name, value in values.items()}}
