"""References to images, parsed as the library distribution/reference does, which run-times and kubelets use."""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

DOCKER_HUB: Final = "docker.io"
_OFFICIAL: Final = "library/"
_LEGACY_HOST: Final = "index.docker.io"
DEFAULT_TAG: Final = "latest"
MAX_NAME: Final = 255
_INVALID: Final = "invalid reference format"
_IDENTIFIER: Final = re.compile(r"[a-f0-9]{64}")
_HOST_PART: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST: Final = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE: Final = re.compile(
    rf"({_HOST})/({_PATH_PART}(?:/{_PATH_PART})*)"
    r"(?::(\w[\w.-]{0,127}))?(?:@([A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
_LOWER_HEXADECIMAL: Final = re.compile(r"[a-f0-9]*")
_LONGEST: Final = 1024
"""A longer text is not a reference: host, name, tag and digest have limits."""


class InvalidReference(ValueError):
    """A reference is invalid; the message is that of distribution/reference."""


class Reference(Struct, frozen=True):
    """A parsed reference, such as docker.io/library/nginx:1.29."""

    host: str
    """The host of the registry, which may have a port."""
    path: str
    tag: str = ""
    """The tag; "" for a reference with a digest alone."""
    digest: str = ""

    @property
    def repository(self) -> str:
        return f"{self.host}/{self.path}"

    @property
    def name(self) -> str:
        """The canonical name, as containerd names the image: with the digest, or else with the tag."""
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"


@lru_cache(maxsize=4096)
def parse_reference(text: str) -> Reference:
    """Return the reference that a text such as `nginx` is short for; raise `InvalidReference` if it is invalid."""
    if _IDENTIFIER.fullmatch(text):
        raise InvalidReference(
            f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings"
        )
    host, remainder = _split_host(text)
    path = remainder.partition(":")[0]
    if path.lower() != path:
        raise InvalidReference(f"{_INVALID}: repository name ({path}) must be lowercase")
    normal = f"{host}/{remainder}"
    match = _REFERENCE.fullmatch(normal) if len(normal) <= _LONGEST else None
    if match is None:
        is_lower_valid = len(normal) <= _LONGEST and _REFERENCE.fullmatch(normal.lower())
        raise InvalidReference("repository name must be lowercase" if is_lower_valid else _INVALID)
    host, path, tag, digest = match.groups("")
    if len(path) > MAX_NAME:
        raise InvalidReference(f"repository name must not be more than {MAX_NAME} characters")
    if digest:
        _check_digest(digest)
    return Reference(host, path, tag if tag or digest else DEFAULT_TAG, digest)


def _split_host(text: str) -> tuple[str, str]:
    """Return the registry's host and the rest; the first part is a host if it can be no part of a path."""
    first, slash, rest = text.partition("/")
    if not slash:
        return DOCKER_HUB, _OFFICIAL + text
    if first == _LEGACY_HOST:
        first = DOCKER_HUB
    elif first != "localhost" and not set(".:") & set(first) and first.lower() == first:
        return DOCKER_HUB, text
    return first, _OFFICIAL + rest if first == DOCKER_HUB and "/" not in rest else rest


def _check_digest(digest: str) -> None:
    algorithm, _, encoded = digest.partition(":")
    length = _DIGEST_LENGTHS.get(algorithm)
    if length is None:
        raise InvalidReference("unsupported digest algorithm")
    if len(encoded) != length:
        raise InvalidReference("invalid checksum digest length")
    if not _LOWER_HEXADECIMAL.fullmatch(encoded):
        raise InvalidReference("invalid checksum digest format")
