"""Masks of secret values: Secrets have their names only, and texts of programs do not quote a value of a Secret."""

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from mockube.apimachinery.secrets import MASK, masked
from mockube.apimachinery.tree import ReadOnlyTree

MIN_LENGTH: Final = 6
"""The characters of the shortest value that is looked for in texts: shorter ones are parts of words."""
SECRETS: Final = "secrets"


def masked_secrets(secrets: Iterable[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
    return [masked(secret) for secret in secrets]


def text_mask(secrets: Iterable[ReadOnlyTree]) -> Callable[[str], str]:
    """Return a function that masks the values of Secrets in a text: as they are, and in base64."""
    values = {value for secret in secrets for value in _values(secret)}
    if not values:
        return lambda text: text
    longest_first = sorted(values, key=lambda value: (-len(value), value))
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    return lambda text: pattern.sub(MASK, text)


def _values(secret: ReadOnlyTree) -> Iterator[str]:
    for encoded in (secret.get("data") or {}).values():
        try:
            value = base64.b64decode(encoded, validate=True).decode()
        except ValueError:  # it is not text
            continue
        if len(value.strip()) >= MIN_LENGTH:
            yield encoded
            yield from filter(lambda line: len(line) >= MIN_LENGTH, map(str.strip, value.splitlines()))


def masked_texts(value: Any, mask: Callable[[str], str], fields: frozenset[str]) -> Any:
    """Return a tree with the texts masked that are in some fields, at any depth."""
    if isinstance(value, dict):
        return {
            name: _masked_all(member, mask) if name in fields else masked_texts(member, mask, fields)
            for name, member in value.items()
        }
    return [masked_texts(member, mask, fields) for member in value] if isinstance(value, list) else value


def _masked_all(value: Any, mask: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mask(value)
    return [_masked_all(member, mask) for member in value] if isinstance(value, list) else value
