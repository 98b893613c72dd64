"""Continue tokens in upstream's encoding: the first key of the next page of a list, and the revision."""

import base64
import posixpath
import string
from collections.abc import Mapping

import orjson
from msgspec import Struct

from mockube.apimachinery.gotext import base64url
from mockube.apiserver.wire.go_json import type_name
from mockube.apiserver.wire.negotiation import MediaType
from mockube.apiserver.wire.parse import UnreadableBody, parse

VERSION = "meta.k8s.io/v1"
LATEST = -1
"""The revision of a token for an inconsistent continuation: the rest of the list is read at the newest revision."""


class BadContinueToken(ValueError):
    """The token is invalid."""


class ContinueToken(Struct, frozen=True):
    """The position of a list's next page."""

    revision: int
    """The list's revision, or `LATEST`."""
    start: str
    """The first key of the page, without the list's prefix."""


def encode(token: ContinueToken) -> str:
    tree = {"v": VERSION, "rv": token.revision, "start": token.start}
    return base64url(orjson.dumps(tree))


def decode(text: str) -> ContinueToken:
    tree = _read(text)
    version, revision, start = tree.get("v", ""), tree.get("rv", 0), tree.get("start", "")
    if version != VERSION:
        raise BadContinueToken(
            f"continue key is not valid: server does not recognize this encoded version {version}"
        )
    assert isinstance(revision, int)
    assert isinstance(start, str)
    if revision == 0:
        raise BadContinueToken(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {VERSION})"
        )
    if not start:
        raise BadContinueToken(f"continue key is not valid: encoded start key empty (version {VERSION})")
    # A client can forge a token: its key must be below the prefix of the list.
    rooted = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(rooted) != rooted:
        raise BadContinueToken(f"continue key is not valid: {start}")
    return ContinueToken(revision, rooted.removeprefix("/"))


def _read(text: str) -> dict[str, object]:
    data = _decode(text.encode())
    try:
        token = parse(data, MediaType.JSON).tree
    except UnreadableBody as error:
        raise BadContinueToken(f"continue key is not valid: {error}") from error
    if token is None:
        return {}
    if not isinstance(token, dict):
        raise _wrong_type(token, "value of type storage.continueToken")
    for name, of in _FIELDS.items():
        value = token.get(name)
        if value is not None and (not isinstance(value, of) or isinstance(value, bool)):
            raise _wrong_type(value, f"struct field continueToken.{name} of type {_GO_NAMES[of]}")
    return {name: value for name, value in token.items() if value is not None}


_FIELDS: Mapping[str, type] = {"v": str, "rv": int, "start": str}
_GO_NAMES = {str: "string", int: "int64"}


def _wrong_type(value: object, go_type: str) -> BadContinueToken:
    return BadContinueToken(
        f"continue key is not valid: json: cannot unmarshal {type_name(value)} into Go {go_type}"
    )


_ALPHABET = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"-_")


def _decode(text: bytes) -> bytes:
    """Decode URL-safe base64 without padding; errors are Go's."""
    position = next((i for i, character in enumerate(text) if character not in _ALPHABET), len(text))
    if position == len(text) and len(text) % 4 == 1:
        position -= 1
    if position < len(text):
        raise BadContinueToken(f"continue key is not valid: illegal base64 data at input byte {position}")
    return base64.b64decode(text + b"=" * (-len(text) % 4), altchars=b"-_")
