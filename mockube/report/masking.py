"""Masks of secret values: Secrets have their names only, and no text quotes a value of a Secret."""

import base64
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery.gotext import HTML_ESCAPES
from mockube.apimachinery.regexp.literals import MIN_LENGTH, Literals
from mockube.apimachinery.secrets import MASK, masked
from mockube.apimachinery.tree import ReadOnlyTree

SECRETS: Final = "secrets"
_NOT_SECRET: Final = frozenset({"namespace"})
"""Fields of Secrets that name something, as that of the token of a ServiceAccount does."""
_DEPTH: Final = 2
"""The values that are found in JSON inside of JSON, as `kubectl apply` has a ConfigMap with a file in JSON in its annotation."""
_PEM_FRAME: Final = re.compile(r"-----(?:BEGIN|END) [A-Z0-9 ]+-----")
_KEPT: Final = frozenset(
    {"apiVersion", "kind", "name", "namespace", "op", "resource", "state", "type", "uid", "verb"}
)
"""Fields that say what a tree is about: it could not be found without them."""


def masked_secrets(secrets: Iterable[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
    return [masked(secret) for secret in secrets]


class ValueMask:
    """Masks the values of Secrets: as they are, in base64, and in JSON. Names of objects are no values.

    Shorter ones than `MIN_LENGTH` are not looked for: they are parts of words.
    """

    def __init__(self, secrets: Iterable[ReadOnlyTree], names: Collection[str]) -> None:
        values = {value for secret in secrets for value in _values(secret) if value not in names}
        self._values = Literals(values)
        self._in_trees = Literals([_in_json(value) for value in values])

    def text(self, text: str) -> str:
        return self._values.replace(text, MASK)

    def tree(self, tree: Any) -> Any:
        """Return a tree with all of its texts masked, but what says what it is about."""
        # Few trees quote a value.
        return self._masked(tree) if self._in_trees.occur_in(orjson.dumps(tree)) else tree

    def trees(self, trees: Iterable[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
        return [*map(self.tree, trees)]

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            is_patch = "op" in value
            return {
                name: member
                if isinstance(member, str) and (name in _KEPT or (is_patch and name == "path"))
                else self._masked(member)
                for name, member in value.items()
            }
        return [*map(self._masked, value)] if isinstance(value, list) else value


def _values(secret: ReadOnlyTree) -> Iterator[str]:
    """Yield the values of a Secret in base64, and the lines of those that are text in their forms."""
    for name, encoded in (secret.get("data") or {}).items():
        if name in _NOT_SECRET:
            continue
        try:
            value = base64.b64decode(encoded, validate=True)
            if len(value.strip()) >= MIN_LENGTH:
                yield encoded
            lines = value.decode().splitlines()
        except ValueError:  # it is not text
            continue
        for line in map(str.strip, lines):
            if len(line) >= MIN_LENGTH and _PEM_FRAME.fullmatch(line) is None:
                yield from _forms(line, _DEPTH)


def _forms(text: str, depth: int) -> Iterator[str]:
    """Yield a text as it is, and as it is inside JSON: that of Go, which kubectl and most programs write, escapes more."""
    yield text
    if depth:
        escaped = _in_json(text)
        for form in {escaped, escaped.translate(HTML_ESCAPES)} - {text}:
            yield from _forms(form, depth - 1)


def _in_json(text: str) -> str:
    return orjson.dumps(text).decode()[1:-1]
