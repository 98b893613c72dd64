"""References of container images: `HOST[:PORT]/PATH[:TAG][@DIGEST]`, as the distribution's parser reads them. Pure."""

import re
from typing import Final, NamedTuple

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
_ANY_DIGEST: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")
"""A text of this form is an image ID, not a name."""

_MAX_PATH: Final = 255
"""RepositoryNameTotalLengthMax of github.com/distribution/reference."""
_HUB: Final = frozenset({"", "docker.io", "index.docker.io"})
_OFFICIAL: Final = "library/"
"""The part of the path that may be omitted on the hub."""


class ImageReference(NamedTuple):
    """The parts of a reference; a part that it does not have is empty."""

    host: str
    path: str
    tag: str
    digest: str


class InvalidImage(ValueError):
    """A text that is not a reference; the message is the distribution's."""


def parse_image(text: str) -> ImageReference:
    """Return the parts of a reference; raise `InvalidImage` if it is not one."""
    if _IDENTIFIER.fullmatch(text):
        message = f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings"
        raise InvalidImage(message)
    match = _REFERENCE.fullmatch(text)
    if match is None:
        raise InvalidImage(_format_error(text))
    reference = ImageReference(*(part or "" for part in match.group("host", "path", "tag", "digest")))
    is_official = reference.host in _HUB and "/" not in reference.path
    if len(reference.path) + len(_OFFICIAL) * is_official > _MAX_PATH:
        raise InvalidImage(f"repository name must not be more than {_MAX_PATH} characters")
    return reference


def _format_error(text: str) -> str:
    named, _, digest = text.partition("@")
    if _ANY_DIGEST.fullmatch(digest) and (match := _REFERENCE.fullmatch(named)) and not match["digest"]:
        return _digest_error(*digest.split(":"))
    host, slash, rest = text.partition("/")
    has_host = bool(slash) and (host == "localhost" or bool(re.search(r"[.:A-Z]", host)))
    on_hub = not has_host or host in _HUB
    path = rest if has_host else text
    repository = f"{_OFFICIAL}{path}" if on_hub and "/" not in path else path
    repository = repository.partition(":")[0]
    if repository != repository.lower():
        return f"invalid reference format: repository name ({repository}) must be lowercase"
    return "invalid reference format"


def _digest_error(algorithm: str, encoded: str) -> str:
    length = _DIGEST_LENGTHS.get(algorithm)
    if length is None:
        return "unsupported digest algorithm"
    return "invalid checksum digest length" if len(encoded) != length else "invalid checksum digest format"
