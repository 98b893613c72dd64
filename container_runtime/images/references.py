"""References to images by their canonical names, which run-times and kubelets use."""

import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from mockube.apimachinery.images import parse_image

DOCKER_HUB: Final = "docker.io"
_OFFICIAL: Final = "library/"
_LEGACY_HOST: Final = "index.docker.io"
_DEFAULT_TAG: Final = "latest"
_NUMBERS: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")


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
    """Return the reference that a text such as `nginx` is short for; raise `InvalidImage` if it is invalid."""
    host, path, tag, digest = parse_image(text)
    if host in ("", _LEGACY_HOST):
        host = DOCKER_HUB
    if host == DOCKER_HUB and "/" not in path:
        path = _OFFICIAL + path
    return Reference(host, path, tag if tag or digest else _DEFAULT_TAG, digest)


def has_version(image: str, since: int | str) -> bool:
    """Return whether an image has a version, or a later one; any has 0. A tag without a version, as latest, is the newest one, and 3 the
    newest 3.
    """
    if not since:
        return True
    tag = parse_reference(image).tag
    numbers = _NUMBERS.match(tag)
    first = [*map(int, str(since).split("."))]
    present = [*map(int, numbers[0].split("."))] if numbers else []
    return present >= first[: len(present)] if present else bool(tag)
