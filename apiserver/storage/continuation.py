"""Continue tokens: where the next page of a list begins, and at which revision. In upstream's own encoding."""

import base64
import binascii
import posixpath

import orjson
from msgspec import Struct

VERSION = "meta.k8s.io/v1"
LATEST = -1
"""As a token's revision: the list can no longer be consistent, but the rest may be had as it is now."""


class BadToken(ValueError):
    """The token is not one that this server made."""


class Continuation(Struct, frozen=True):
    """`start` is below the list's prefix; `revision` is the list's, or `LATEST`."""

    revision: int
    start: str


def encode(continuation: Continuation) -> str:
    token = {"v": VERSION, "rv": continuation.revision, "start": continuation.start}
    return base64.urlsafe_b64encode(orjson.dumps(token)).rstrip(b"=").decode()


def decode(text: str) -> Continuation:
    token = _read(text)
    version, revision, start = token.get("v", ""), token.get("rv", 0), token.get("start", "")
    if version != VERSION:
        raise BadToken(f"continue key is not valid: server does not recognize this encoded version {version}")
    if not isinstance(revision, int) or not isinstance(start, str):
        raise BadToken("continue key is not valid: a field has another type")
    if revision == 0:
        raise BadToken(
            f"continue key is not valid: incorrect encoded start resourceVersion (version {VERSION})"
        )
    if not start:
        raise BadToken(f"continue key is not valid: encoded start key empty (version {VERSION})")
    # A token is the client's to forge: it must not lead out of the list's own folder.
    rooted = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(rooted) != rooted:
        raise BadToken(f"continue key is not valid: {start}")
    return Continuation(revision, rooted.removeprefix("/"))


def _read(text: str) -> dict[str, object]:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        at = next((i for i, c in enumerate(text) if not (c.isalnum() or c in "-_")), len(text))
        raise BadToken(f"continue key is not valid: illegal base64 data at input byte {at}") from error
    try:
        token = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        first = data[:1].decode("latin-1")
        problem = (
            f"invalid character '{first}' looking for beginning of value"
            if first
            else "unexpected end of JSON input"
        )
        raise BadToken(f"continue key is not valid: {problem}") from error
    return token if isinstance(token, dict) else {}
