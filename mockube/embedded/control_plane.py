"""The composition root of an in-process control plane: server, controllers, recorder and faults in one event loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery.randomness import SystemRandom
from mockube.apimachinery.schema import minors
from mockube.cluster_client import NAME, ServerClient
from mockube.component_base.clock import Clock
from mockube.component_base.flags import comma_separated
from mockube.component_base.supervision import start
from mockube.controller_manager.app import Manager
from mockube.controller_manager.catalog import NAMES
from mockube.controller_manager.client.connect import ClientOptions, connect
from mockube.controller_manager.client.kubeconfig import Access
from mockube.controller_manager.command_line import parse
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.config.signing import signer_files
from mockube.embedded.faults import FaultInjector
from mockube.embedded.log_capture import CapturedLog, capture_log
from mockube.embedded.recorder import CallRecorder
from mockube.embedded.serving import KUBECONFIG, EmbeddedServer, parse_flags, run_server, server_config
from mockube.embedded.virtual_clock import VirtualClock, advance_clock
from mockube.processes.control_plane import CLIENT_CA_FILES, SERVICE_ACCOUNT_KEY
from mockube.processes.defaults import KRUISE, NODES

START_SECONDS: Final = 30.0
SHUTDOWN_SECONDS: Final = 0.5
"""The time in which controllers can finish their current work at the end."""


class ClusterOptions(Struct, frozen=True, kw_only=True):
    nodes: int = NODES
    packs: str = KRUISE
    """Packs of kinds to serve besides those of Kubernetes."""
    minor: str = minors.NEWEST
    """The minor release of Kubernetes that the server has."""
    flags: Sequence[str] = ()
    """More flags of the API server."""
    manager_flags: Sequence[str] = ()
    """More flags of the controller manager."""
    images: Mapping[str, Any] | Path | None = None
    """Local commands by image, or the path of a file with this map."""


class EmbeddedControlPlane(Struct, frozen=True, kw_only=True):
    """A running control plane."""

    clock: VirtualClock
    server: EmbeddedServer
    client: ServerClient
    """A client with the administrator's credentials."""
    recorder: CallRecorder
    faults: FaultInjector
    log: CapturedLog

    async def advance(self, seconds: float) -> None:
        """Advance the clock by some seconds, and run everything that is due by then."""
        await advance_clock(self.clock, seconds, lambda: self.faults.is_busy)


@asynccontextmanager
async def control_plane(options: ClusterOptions) -> AsyncIterator[EmbeddedControlPlane]:
    """Run a control plane, and yield it when its nodes are ready and pods can be created; raise ValueError for invalid flags."""
    clock, random = VirtualClock(), SystemRandom()
    faults = FaultInjector(clock)
    recorder = CallRecorder(faults.inject, clock)
    async with AsyncExitStack() as stack:
        log = stack.enter_context(capture_log())
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="mockube-")))
        config = server_config(
            folder,
            packs=options.packs,
            flags=options.flags,
            metrics=options.nodes > 0,
            minor=options.minor,
        )
        manager_config = _manager_config(options, folder)
        server = await stack.enter_async_context(
            run_server(config, folder, clock=clock, random=random, middleware=recorder.record)
        )
        manager = Manager(
            _with_signing_keys(
                manager_config, folder, is_client_ca=config.authentication.client_ca_file is None
            ),
            clock=clock,
            random=random,
            access=server.controllers,
            transport=server.transport,
        )
        await stack.enter_async_context(_run_manager(manager))
        stack.callback(faults.clear)
        async with _connect_client(server, server.controllers, clock) as manager_client:
            await manager_client.wait_usable(options.nodes, seconds=START_SECONDS)
        client = await stack.enter_async_context(_connect_client(server, server.admin, clock))
        yield EmbeddedControlPlane(
            clock=clock, server=server, client=client, recorder=recorder, faults=faults, log=log
        )


def _manager_config(options: ClusterOptions, folder: Path) -> Config:
    """Return the manager's configuration. Leader election is off, because there is one manager."""
    kubeconfig = folder / KUBECONFIG
    own_flags = ("--kubeconfig", str(kubeconfig), "--simulate-nodes", str(options.nodes))
    flags = (*_image_flags(options.images, folder), *options.manager_flags)
    config = parse_flags(lambda: parse((*own_flags, *flags), {}, NAMES)) if flags else Config()
    return replace(
        config,
        server=replace(config.server, kubeconfig=kubeconfig),
        controllers=replace(
            config.controllers,
            controller_shutdown_timeout=SHUTDOWN_SECONDS,
            packs=comma_separated(options.packs),
        ),
        leading=replace(config.leading, leader_elect=False),
        features=replace(config.features, kubernetes_version=options.minor),
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
    """Set the server's generated keys for signing tokens and certificates, unless flags set others."""
    generated = folder / "pki" / SERVICE_ACCOUNT_KEY
    if not config.controllers.service_account_private_key_file and generated.exists():
        controllers = replace(config.controllers, service_account_private_key_file=generated)
        config = replace(config, controllers=controllers)
    certificate, key = (folder / "pki" / name for name in CLIENT_CA_FILES)
    if not is_client_ca or any(signer_files(config.signing)):
        return config
    signing = replace(config.signing, cluster_signing_cert_file=certificate, cluster_signing_key_file=key)
    return replace(config, signing=signing)


@asynccontextmanager
async def _run_manager(manager: Manager) -> AsyncIterator[None]:
    """Run the manager during the block; its failure cancels the block."""
    async with asyncio.TaskGroup() as group:
        manager_task = start("manager", manager.run(), group=group, endless=True)
        yield
        manager_task.cancel()


@asynccontextmanager
async def _connect_client(
    server: EmbeddedServer, access: Access, clock: Clock
) -> AsyncIterator[ServerClient]:
    options = ClientOptions(access=access, clock=clock, agent=NAME, transport=server.transport)
    async with connect(options) as client:
        yield ServerClient(client)
