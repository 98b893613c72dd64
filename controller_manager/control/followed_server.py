"""What a manager without flags of its own follows: the minor release of the API server, and the packs that the server has.

A server with a pack, and `mockube crds`, label the definitions of the pack. A definition without the label is that of another
project, which has a manager of its own: two managers of one object would undo each other's work.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.informer import Informer
from mockube.client.cache.store import Change
from mockube.client.kinds import CUSTOM_RESOURCE_DEFINITIONS
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.packs import LABEL, pack_names
from mockube.controller_manager.config.settings import Config

LOG: Final = logging.getLogger(__name__)

_ACCEPT: Final = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_RELEASE: Final = re.compile(r"v?1\.([0-9]{1,3})")


class UnusableFlags(Exception):
    """Flags that cannot be used with the release or the packs of the server."""


class ServerState(Struct, frozen=True, kw_only=True):
    """The release of a server, and its packs."""

    version: str
    """Its version as it reports it, such as v1.36.3."""
    minor: str
    """Its minor release, or the nearest one that the controllers have."""
    packs: tuple[str, ...] = ()


async def read_server(client: Client, *, with_packs: bool) -> ServerState:
    """Return what a server is; its packs only if they are needed.

    They are read after the version, over the same connection: a second one, for both at once, takes longer by its TLS handshake.
    """
    version = await client.raw("GET", "/version")
    packs = await _read_packs(client) if with_packs else ()
    return ServerState(version=version.get("gitVersion") or "unknown", minor=minor_of(version), packs=packs)


async def _read_packs(client: Client) -> tuple[str, ...]:
    """Return the packs of the labelled definitions; none if they may not be listed."""
    path = f"{CUSTOM_RESOURCE_DEFINITIONS.path()}?labelSelector={LABEL}"
    try:
        definitions = (await client.raw("GET", path, accept=_ACCEPT)).get("items") or ()
    except ApiError as error:
        LOG.warning("The packs of the API server are unknown, and do not run: %s", error.message)
        return ()
    return tuple(sorted({meta.labels(definition)[LABEL] for definition in definitions}))


def minor_of(version: ReadOnlyTree) -> str:
    """Return the minor release that a document of `/version` reports, or the nearest one that the controllers have.

    A server that emulates an older minor behaves as that one.
    """
    digits = re.match("[0-9]+", version.get("emulationMinor") or version.get("minor") or "")
    release = _RELEASE.match(version.get("gitVersion") or "")
    number = int(digits[0]) if digits else int(release[1]) if release else minors.number(minors.NEWEST)
    oldest, newest = minors.number(minors.OLDER[-1]), minors.number(minors.NEWEST)
    return f"1.{min(max(number, oldest), newest)}"


def config_for(config: Config, server: ServerState) -> Config:
    """Return the settings with those of the server where no flag sets them."""
    features, controllers = config.features, config.controllers
    if features.follows_server:
        features = replace(features, kubernetes_version=server.minor)
    if controllers.packs is None:
        controllers = replace(controllers, packs=tuple(_installed(server.packs)))
    return replace(config, features=features, controllers=controllers)


def _installed(packs: Collection[str]) -> Iterator[str]:
    installed: Collection[str] = pack_names() if packs else ()
    for pack in packs:
        if pack in installed:
            yield pack
        else:
            LOG.warning(
                'The API server has the pack "%s", which is not installed here: its controllers do not run',
                pack,
            )


def report(flags: Config, server: ServerState) -> None:
    """Log what the manager follows, and what its flags set otherwise. `flags` are its settings before `config_for`."""
    minor = flags.features.kubernetes_version
    if flags.features.follows_server:
        LOG.info("Kubernetes %s, as the API server, whose version is %s", server.minor, server.version)
    elif minor != server.minor:
        LOG.warning(
            "Kubernetes %s, as --kubernetes-version says; the version of the API server is %s",
            minor,
            server.version,
        )
    if flags.controllers.packs is None and server.packs:
        LOG.info("Packs: %s, as the API server", ", ".join(server.packs))


class ServerObserver:
    """Notices while all work runs that the server has another minor release, or packs that do not run here."""

    def __init__(
        self, client: Client, flags: Config, known: ServerState, on_change: Callable[[], None]
    ) -> None:
        """`flags` are the settings before `config_for`; `on_change` restarts all work."""
        self._client = client
        self._flags = flags
        self.known = known
        self._on_change = on_change
        self._watch_began = asyncio.Event()
        self._running_packs = {*(known.packs if flags.controllers.packs is None else flags.controllers.packs)}

    def observe(self, namespaces: Informer[ReadOnlyTree], definitions: Informer[ReadOnlyTree]) -> None:
        namespaces.on_watch(self._watch_began.set)
        definitions.add_handler(self._on_definition)

    async def run(self) -> None:
        """Read the version again whenever a watch begins: another server may answer since then."""
        while True:
            await self._watch_began.wait()
            self._watch_began.clear()
            try:
                server = await read_server(self._client, with_packs=False)
            except (ApiError, NoResponse):
                continue  # the watch ends as well, and begins again
            if server.minor != self.known.minor:
                self._change(
                    replace(server, packs=self.known.packs), restarts=self._flags.features.follows_server
                )

    def _on_definition(self, change: Change) -> None:
        pack = meta.labels(change.new).get(LABEL) if change.new is not None else None
        if not pack or pack in self._running_packs:
            return
        self._running_packs.add(pack)
        if self._flags.controllers.packs is None:
            self._change(replace(self.known, packs=tuple(sorted({*self.known.packs, pack}))), restarts=True)
        else:
            LOG.warning(
                'The API server has the pack "%s", whose controllers do not run: --packs does not name it',
                pack,
            )

    def _change(self, server: ServerState, *, restarts: bool) -> None:
        self.known = server
        report(self._flags, server)
        if restarts:
            LOG.warning("The API server has changed. All work restarts")
            self._on_change()
