"""References of container images, and the pull policy that their tag implies."""

import re
from functools import lru_cache
from typing import Final

_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST: Final = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
_REFERENCE: Final = re.compile(
    # The part before the first slash is a host if it does not look like a part of a path.
    rf"(?:(?=localhost/|[^/]*[.:A-Z])(?P<host>{_HOST})/)?(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    rf"(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
)
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")
"""A text of this form is an image ID, not a name."""

_MAX_PATH: Final = 255
_HUB: Final = frozenset({None, "docker.io", "index.docker.io"})
_OFFICIAL: Final = "library/"
"""The part of the path that may be omitted on the hub."""


def pull_policy(image: str) -> str:
    """Return `Always` for the tag `latest`, the default without tag and digest. An invalid name has no tag."""
    return _usual_policy(image) if len(image) <= _USUAL_LENGTH else _policy(image)


def _policy(image: str) -> str:
    match = _parse(image)
    if match is None:
        return "IfNotPresent"
    latest = match["tag"] == "latest" or not (match["tag"] or match["digest"])
    return "Always" if latest else "IfNotPresent"


# Few images are used many times. A long text is rare, and would fill the cache.
_USUAL_LENGTH: Final = 255
_usual_policy = lru_cache(maxsize=4096)(_policy)


def _parse(image: str) -> re.Match[str] | None:
    match = None if _IDENTIFIER.fullmatch(image) else _REFERENCE.fullmatch(image)
    return match if match and _path_length(match) <= _MAX_PATH else None


def _path_length(match: re.Match[str]) -> int:
    path: str = match["path"]
    left_out = match["host"] in _HUB and "/" not in path
    return len(path) + len(_OFFICIAL) * left_out
