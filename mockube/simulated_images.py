"""The images that a cluster's ConfigMap adds: read from it, and added to it. The manager of the cluster watches it.

It works with any API server that has a controller manager of mockube with simulated nodes.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from mockube.apimachinery.status import AlreadyExists, Conflict, NotFound
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.apiserver.wire.yaml_codec import dump
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.verbs import Client
from mockube.container_runtime.images.live import LOADED, TABLE, live_images
from mockube.container_runtime.images.references import parse_reference
from mockube.container_runtime.images.table import ImageTableError, LiveImages
from mockube.kubelet.live_images import CONFIG_MAP

_ATTEMPTS: Final = 10
"""How often a change is tried while others change the ConfigMap."""


async def images_of_cluster(client: Client) -> LiveImages:
    """Return what the users of a cluster say of images."""
    try:
        return live_images(await client.get(CONFIG_MAPS, CONFIG_MAP))
    except NotFound:
        return LiveImages()


async def add_images(client: Client, entries: Mapping[str, Any]) -> None:
    """Add entries of a table to those of a cluster; one with the same key is replaced."""

    def change(data: Mapping[str, str]) -> dict[str, str]:
        present = _present_entries(data.get(TABLE) or "")
        return {**data, TABLE: dump({**present, **entries}).decode()}

    await _change(client, change)


def _present_entries(text: str) -> Mapping[str, Any]:
    try:
        tree = load(text.encode()).tree or {}
    except YamlError as error:
        raise ImageTableError(f"{_WHERE}: {error}") from error
    if not isinstance(tree, dict):
        raise ImageTableError(f"{_WHERE}: it is no mapping of entries")
    return tree


_WHERE: Final = f"ConfigMap {CONFIG_MAP.namespace}/{CONFIG_MAP.name}: {TABLE}"


async def load_images(client: Client, references: list[str]) -> None:
    """Say that images exist."""
    names = [parse_reference(reference).name for reference in references]

    def change(data: Mapping[str, str]) -> dict[str, str]:
        present = (data.get(LOADED) or "").split()
        return {**data, LOADED: "".join(f"{name}\n" for name in dict.fromkeys([*present, *names]))}

    await _change(client, change)


async def _change(client: Client, change: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
    for _ in range(_ATTEMPTS - 1):
        with suppress(AlreadyExists, Conflict):
            return await _try_change(client, change)
    return await _try_change(client, change)


async def _try_change(client: Client, change: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
    try:
        config_map = await client.get(CONFIG_MAPS, CONFIG_MAP)
    except NotFound:
        metadata = {"name": CONFIG_MAP.name, "namespace": CONFIG_MAP.namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": change({})}
        await client.create(CONFIG_MAPS, body)
    else:
        await client.update(CONFIG_MAPS, {**config_map, "data": change(config_map.get("data") or {})})
