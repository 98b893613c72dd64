"""The credentials of pods for registries: Secrets of the types dockerconfigjson and dockercfg.

Upstream: pkg/credentialprovider. Of the credentials only the registries count here; any password is right.
"""

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wildcards import WildcardsTooCostly, matches_wildcards
from mockube.client.kinds import SECRETS
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.container_runtime.images.references import DOCKER_HUB
from mockube.container_runtime.images.resolution import full_name

_MAX_SECRETS: Final = 1_000
"""The number of Secrets whose registries are remembered."""
_TYPES: Final = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson", "auths"),
    "kubernetes.io/dockercfg": (".dockercfg", ""),
}
"""The key of the data, and the field with the registries, by the type of a Secret."""
_HUB_ALIASES: Final = ("index.docker.io", "registry-1.docker.io")


def registries_of(secret: ReadOnlyTree) -> tuple[str, ...]:
    """Return the registries for which a Secret has credentials, such as ghcr.io/team; none for one that cannot be read."""
    key, field = _TYPES.get(secret.get("type") or "", ("", ""))
    text = (secret.get("data") or {}).get(key)
    if not text:
        return ()
    try:
        tree: Any = msgspec.json.decode(b64decode(text))
    except (ValueError, msgspec.DecodeError):
        return ()
    registries = tree.get(field) if field and isinstance(tree, dict) else tree
    return tuple(map(_without_scheme, registries)) if isinstance(registries, dict) else ()


def _without_scheme(registry: str) -> str:
    url = urlsplit(registry if "//" in registry else f"//{registry}")
    path = url.path.rstrip("/")
    # The addresses of the API of Docker Hub stand for the registry.
    return url.netloc if path in ("/v1", "/v2") else url.netloc + path


def matches_registry(registries: Iterable[str], image: str) -> bool:
    """Return whether one of the registries is that of an image. `*` in a host stands for one part of its name."""
    host, _, path = full_name(image).partition("/")
    return any(_matches(registry, host, path) for registry in registries)


def _matches(registry: str, host: str, path: str) -> bool:
    name, _, prefix = registry.partition("/")
    if not path.startswith(prefix):
        return False
    if host == DOCKER_HUB and name in (DOCKER_HUB, *_HUB_ALIASES):
        return True
    name, _, port = name.partition(":")
    host, _, port_of_image = host.partition(":")
    parts, host_parts = name.split("."), host.split(".")
    if port != port_of_image or len(parts) != len(host_parts):
        return False
    try:
        return all(matches_wildcards(part, pattern) for part, pattern in zip(host_parts, parts, strict=True))
    except WildcardsTooCostly:
        return False


class PullSecrets:
    """The registries of Secrets. The caches of Secrets do not have the values, so each version is requested once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._registries: dict[Key, tuple[str, tuple[str, ...]]] = {}
        """The versions and the registries of Secrets."""

    def find(self, secret: ReadOnlyTree) -> tuple[str, ...] | None:
        """Return the registries of a version of a Secret; None if they are not known."""
        version, registries = self._registries.get(Key.of(secret), ("", ()))
        return registries if version == meta.resource_version(secret) else None

    async def load(self, cached_secrets: Mapping[Key, ReadOnlyTree]) -> None:
        """Request Secrets; one that cannot be read has no registries until its next version."""
        if len(self._registries) + len(cached_secrets) > _MAX_SECRETS:
            self._registries.clear()
        for key, cached_secret in cached_secrets.items():
            try:
                registries = registries_of(await self._client.get(SECRETS, key))
            except (ApiError, NoResponse):
                registries = ()
            self._registries[key] = meta.resource_version(cached_secret), registries


def pull_secret_names(pod: ReadOnlyTree) -> Iterator[str]:
    for reference in pod["spec"].get("imagePullSecrets") or ():
        if name := reference.get("name"):
            yield name
