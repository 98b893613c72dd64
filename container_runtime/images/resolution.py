"""What a reference to an image resolves to, without a network: its canonical name, digest and size, or why the pull fails.

A known repository has the tags of its releases, a short name must not be a mistake for an official image, a reserved host does
not exist. Everything else may exist: nobody knows what a registry of others has.
"""

import hashlib
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from mockube.apimachinery.images import InvalidImage

from . import registries
from .near_names import is_mistaken, is_named_missing, is_placeholder
from .references import DOCKER_HUB, Reference, parse_reference
from .registries import PullError, origin
from .releases import Releases
from .table import Image, ImageTable

_OFFICIAL_IMAGES: Final = Path(__file__).with_name("official_images.json")
_OFFICIAL: Final = f"{DOCKER_HUB}/library/"
_MIB: Final = 1 << 20
_NEWEST: Final = frozenset(["", "current", "latest", "lts", "main", "mainline", "master", "stable"])
"""The words of tags that name the newest image."""
_SMALLEST, _SIZES = 5 * _MIB, 145 * _MIB
"""The sizes of images whose size is unknown begin at the first, and are all different."""


class ImageResolution(Struct, frozen=True, kw_only=True):
    """What a reference resolves to."""

    name: str
    """The canonical name, such as docker.io/library/nginx:1.29; "" for an invalid reference."""
    repository: str = ""
    digest: str = ""
    """The digest of the image, which mirrors of a repository have, too."""
    size: int = 0
    """How many bytes are pulled."""
    image: Image | None = None
    """What is known of the image."""
    problem: str = ""
    """Why the run-time cannot pull the image, in containerd's words; "" if it can."""
    code: str = ""
    """The code of the run-time's gRPC error, such as NotFound."""
    invalid: str = ""
    """Why the kubelet cannot parse the reference, in its words; "" if it can."""

    @property
    def error(self) -> str:
        """What the kubelet reports of the failed pull."""
        return f"rpc error: code = {self.code} desc = {self.problem}" if self.problem else ""


def resolve(images: ImageTable, reference: str, *, has_pull_secret: bool = False) -> ImageResolution:
    """Return what a reference resolves to on a node, for a pod that has a pull secret for its registry or not."""
    image = images.behavior_of_image(reference)
    return _resolve(
        reference,
        image,
        is_added=image is not None and images.is_added(image),
        is_loaded=is_loaded(images, reference),
        has_pull_secret=has_pull_secret,
    )


@lru_cache(maxsize=8192)
def _resolve(
    reference: str, image: Image | None, *, is_added: bool, is_loaded: bool, has_pull_secret: bool
) -> ImageResolution:
    try:
        parsed = parse_reference(reference)
    except InvalidImage as error:
        return ImageResolution(name="", invalid=f'couldn\'t parse image name "{reference}": {error}')
    refusal = (
        None if is_loaded else _pull_error(parsed, image, is_added=is_added, has_pull_secret=has_pull_secret)
    )
    if refusal is not None:
        prefix = (
            f'failed to pull and unpack image "{parsed.name}": failed to resolve reference "{parsed.name}"'
        )
        return ImageResolution(
            name=parsed.name,
            repository=parsed.repository,
            image=image,
            problem=f"{prefix}: {refusal.reason}",
            code=refusal.code,
        )
    digest = parsed.digest or f"sha256:{_digest(parsed)}"
    size = int(image.size) if image is not None and image.size else _SMALLEST + int(digest[-12:], 16) % _SIZES
    return ImageResolution(
        name=parsed.name, repository=parsed.repository, digest=digest, size=size, image=image
    )


def _pull_error(
    reference: Reference, image: Image | None, *, is_added: bool, has_pull_secret: bool
) -> PullError | None:
    if not is_added and (registries.is_reserved(reference) or is_named_missing(reference.host)):
        return registries.no_such_host(reference)
    is_private = image.private if image is not None else registries.is_named_private(reference)
    if is_private and not has_pull_secret:
        return registries.unauthorized(reference)
    official = origin(reference.repository).removeprefix(_OFFICIAL)
    if image is None and (
        is_mistaken(official, official_images().keys())
        or is_named_missing(reference.path)
        or (reference.host == DOCKER_HUB and is_placeholder(reference.path.partition("/")[0]))
    ):
        return registries.no_such_repository(reference)
    releases = (image and image.releases) or (None if is_added else official_images().get(official))
    if releases is not None and not reference.digest:
        return None if releases.has(reference.tag) else registries.no_such_tag(reference)
    return registries.no_such_tag(reference) if is_named_missing(reference.tag) and not is_added else None


def is_loaded(images: ImageTable, reference: str) -> bool:
    """Return whether a user of the cluster has said that an image exists, as on each node of a cluster of kind after its `load`."""
    return bool(images.loaded) and full_name(reference) in images.loaded


@cache
def official_images() -> dict[str, Releases]:
    """Return the releases of Docker's official images, such as nginx."""
    return msgspec.json.decode(_OFFICIAL_IMAGES.read_bytes(), type=dict[str, Releases])


def _digest(reference: Reference) -> str:
    """Return the digest of a tag's image. Words such as latest and stable name the same image, as often in registries."""
    has_version = any(map(str.isdecimal, reference.tag))
    version = reference.tag if has_version else "-".join(sorted({*reference.tag.split("-")} - _NEWEST))
    return hashlib.sha256(f"{origin(reference.repository)}/{version}".encode()).hexdigest()


@lru_cache(maxsize=8192)
def full_name(reference: str) -> str:
    """Return the canonical name of a reference, such as docker.io/library/nginx:1.29; an invalid one as it is."""
    try:
        return parse_reference(reference).name
    except InvalidImage:
        return reference


@lru_cache(maxsize=8192)
def image_id(reference: str) -> str:
    """Return the id of an image as a container's status has it, such as docker.io/library/nginx@sha256:…."""
    try:
        parsed = parse_reference(reference)
    except InvalidImage:
        return reference
    return f"{parsed.repository}@{parsed.digest or f'sha256:{_digest(parsed)}'}"


def is_official(resolution: ImageResolution) -> bool:
    """Return whether an image is one of Docker's official ones, or of a mirror of theirs."""
    return origin(resolution.repository).removeprefix(_OFFICIAL) in official_images()


def is_known(images: ImageTable, reference: str) -> bool:
    """Return whether an image is in the table, was loaded, or is one of Docker's official ones."""
    resolution = resolve(images, reference, has_pull_secret=True)
    return resolution.image is not None or is_loaded(images, reference) or is_official(resolution)
