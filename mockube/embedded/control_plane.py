"""The one place that wires a control plane in one event loop: server, controllers, what watches and what disturbs them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.schema import minors
from mockube.cluster_client import NAME, ServerClient
from mockube.controller_manager.app import Manager
from mockube.controller_manager.catalog import NAMES
from mockube.controller_manager.client.connect import Connection, connect
from mockube.controller_manager.client.kubeconfig import Access
from mockube.controller_manager.command_line import parse
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.config.signing import signer_files
from mockube.controller_manager.supervision import start
from mockube.embedded.faults import Faults
from mockube.embedded.log_capture import CapturedLog, capture_log
from mockube.embedded.recorder import Recorder
from mockube.embedded.serving import KUBECONFIG, Site, parse_flags, server_config, serving
from mockube.embedded.virtual_clock import VirtualClock, advance_clock
from mockube.processes.control_plane import ACCOUNTS_KEY, AUTHORITY
from mockube.processes.defaults import KRUISE, NODES

START_SECONDS: Final = 30.0
SHUTDOWN_SECONDS: Final = 0.5
"""How long controllers may finish their current work at the end; most of it takes no time."""


class ClusterOptions(Struct, frozen=True, kw_only=True):
    nodes: int = NODES
    packs: str = KRUISE
    """Kinds to serve besides Kubernetes' own."""
    minor: str = minors.NEWEST
    """The minor release of Kubernetes that the server is of."""
    flags: Sequence[str] = ()
    """More flags of the API server."""
    manager_flags: Sequence[str] = ()
    """And of the controller manager."""
    images: Mapping[str, Any] | Path | None = None
    """Which images are local commands, or the file with this map."""


class Plane(Struct, frozen=True, kw_only=True):
    """A control plane that runs."""

    clock: VirtualClock
    site: Site
    reach: ServerClient
    """As the administrator."""
    recorder: Recorder
    faults: Faults
    journal: CapturedLog

    async def advance(self, seconds: float) -> None:
        """Let so many seconds pass at once, with all that happens in them."""
        await advance_clock(self.clock, seconds, lambda: self.faults.is_busy)


@asynccontextmanager
async def control_plane(options: ClusterOptions) -> AsyncIterator[Plane]:
    """Run a control plane, which yields once its nodes are ready and pods can be created; ValueError for bad flags."""
    clock, random = VirtualClock(), SystemRandom()
    faults = Faults(clock)
    recorder = Recorder(faults.inject, clock)
    async with AsyncExitStack() as stack:
        journal = stack.enter_context(capture_log())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="mockube-")))
        config = server_config(
            folder,
            packs=options.packs,
            flags=options.flags,
            metrics=options.nodes > 0,
            minor=options.minor,
        )
        manager_config = _manager_config(options, folder)
        site = await stack.enter_async_context(
            serving(config, folder, clock=clock, random=random, middleware=recorder.record)
        )
        manager = Manager(
            _with_signing_keys(
                manager_config, folder, is_client_ca=config.authentication.client_ca_file is None
            ),
            clock=clock,
            random=random,
            access=site.controllers,
            transport=site.transport,
        )
        await stack.enter_async_context(_working(manager))
        stack.callback(faults.clear)
        async with _reaching(site, site.controllers, clock) as own:
            await own.wait_usable(options.nodes, seconds=START_SECONDS)
        reach = await stack.enter_async_context(_reaching(site, site.admin, clock))
        yield Plane(clock=clock, site=site, reach=reach, recorder=recorder, faults=faults, journal=journal)


def _manager_config(options: ClusterOptions, folder: Path) -> Config:
    """There is one manager, so it needs no leader election."""
    kubeconfig = folder / KUBECONFIG
    own = ("--kubeconfig", str(kubeconfig), "--simulate-nodes", str(options.nodes))
    flags = (*_image_flags(options.images, folder), *options.manager_flags)
    config = parse_flags(lambda: parse((*own, *flags), {}, NAMES)) if flags else Config()
    return replace(
        config,
        server=replace(config.server, kubeconfig=kubeconfig),
        controllers=replace(config.controllers, controller_shutdown_timeout=SHUTDOWN_SECONDS),
        leading=replace(config.leading, leader_elect=False),
        simulation=replace(config.simulation, simulate_nodes=options.nodes),
    )


def _image_flags(images: Mapping[str, Any] | Path | None, folder: Path) -> Sequence[str]:
    if images is None:
        return ()
    path = images if isinstance(images, Path) else folder / "images.yaml"
    if not isinstance(images, Path):
        tree = {"folder": str(Path.cwd()), "images": images}
        path.write_bytes(orjson.dumps(tree, option=orjson.OPT_NON_STR_KEYS))  # JSON is YAML, too
    return "--container-runtime=process", f"--images={path}"


def _with_signing_keys(config: Config, folder: Path, *, is_client_ca: bool) -> Config:
    """The server's, unless the manager was given others, or the server: for tokens, and for certificates."""
    generated = folder / "pki" / ACCOUNTS_KEY
    if not config.controllers.service_account_private_key_file and generated.exists():
        controllers = replace(config.controllers, service_account_private_key_file=generated)
        config = replace(config, controllers=controllers)
    certificate, key = (folder / "pki" / name for name in AUTHORITY)
    if not is_client_ca or any(signer_files(config.signing)):
        return config
    signing = replace(config.signing, cluster_signing_cert_file=certificate, cluster_signing_key_file=key)
    return replace(config, signing=signing)


@asynccontextmanager
async def _working(manager: Manager) -> AsyncIterator[None]:
    """As long as the block lasts; the block ends if it fails."""
    async with asyncio.TaskGroup() as group:
        working = start("manager", manager.run(), group=group, endless=True)
        yield
        working.cancel()


@asynccontextmanager
async def _reaching(site: Site, access: Access, clock: Clock) -> AsyncIterator[ServerClient]:
    connection = Connection(access=access, clock=clock, agent=NAME, transport=site.transport)
    async with connect(connection) as client:
        yield ServerClient(client)
