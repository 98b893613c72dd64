"""The composition root of an in-process control plane: server, controllers, recorder and faults in one event loop."""

import asyncio
import io
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, redirect_stderr
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from msgspec.structs import replace

from mockube.apimachinery.randomness import Random, SeededRandom, SystemRandom
from mockube.apimachinery.schema import minors
from mockube.apiserver.config.command_line import Config as ServerConfig
from mockube.apiserver.config.command_line import parse as parse_server_flags
from mockube.apiserver.config.settings import SECTIONS as SERVER_SECTIONS
from mockube.apiserver.control.faults import Fault, FaultInjector, InjectedFault
from mockube.apiserver.control.recorder import MAX_CALLS, RequestRecorder
from mockube.apiserver.control.server_control import FaultControl
from mockube.apiserver.registry.component_statuses import EmbeddedProbe
from mockube.client.connect import ClientOptions, connect
from mockube.client.kubeconfig import Access
from mockube.client.verbs import Client
from mockube.cluster_client import wait_for_pods
from mockube.command_client import AGENT
from mockube.component_base.clock import Clock, ClusterClock
from mockube.component_base.flags import flag_names, flags_of
from mockube.component_base.suggestions import did_you_mean
from mockube.component_base.supervision import start
from mockube.component_base.temporary_folder import temporary_folder
from mockube.container_runtime.images.table import is_description
from mockube.controller_manager.app import Manager, components
from mockube.controller_manager.catalog import NAMES
from mockube.controller_manager.command_line import parse as parse_manager_flags
from mockube.controller_manager.config.settings import SECTIONS as MANAGER_SECTIONS
from mockube.controller_manager.config.settings import Config
from mockube.launch import MEMORY, LaunchOptions, temporary_server_flags
from mockube.objects.requests import ObjectRequests

from . import determinism
from .determinism import SteppedWork
from .fork_problems import fork_problem
from .log_capture import CapturedLog, capture_log
from .plane import ForkableControlPlane, health_of, observation_of
from .serving import KUBECONFIG, EmbeddedServer, run_server

T = TypeVar("T")

START_SECONDS: Final = 90.0
_LOG_NOTE: Final = (
    "The program runs in the process of the test: `Cluster.complaints` has its warnings and errors.\n"
)
_UNKNOWN_FLAG: Final = re.compile(r"unrecognized arguments: (--[\w-]+)")
SHUTDOWN_SECONDS: Final = 2.0
"""The time in which controllers can finish their current work at the end.

Containers whose processes ignore SIGTERM need more than half a second."""


class ClusterOptions(LaunchOptions, frozen=True, kw_only=True):
    minor: str = minors.NEWEST
    """The minor release of Kubernetes that the server has."""
    scheduler_plugins: Sequence[object] = ()
    """Plugins of the scheduler, which are on unless a profile disables them."""
    images: Mapping[str, Any] | Path | None = None
    """Local commands by image, or the path of a file with this map."""
    seed: int | None = None
    """The seed of a cluster whose runs are the same; None for one with the machine's time and randomness."""


class EmbeddedControlPlane(ForkableControlPlane, frozen=True, kw_only=True):
    """A running control plane."""

    requests: ObjectRequests
    """Requests with the administrator's credentials."""
    recorder: RequestRecorder
    log: CapturedLog

    async def inject(self, fault: Fault) -> InjectedFault:
        """Inject a valid fault. It is an object of the kind Fault, if the server has the group of control."""
        return await self._fault_control.inject(fault)

    async def stop_fault(self, injected: InjectedFault) -> None:
        await self._fault_control.stop(injected)

    async def stop_faults(self) -> None:
        """Stop all faults, also those that others have created as objects."""
        await self._fault_control.clear()

    @property
    def _fault_control(self) -> FaultControl:
        return self.server.api_server.control.faults_of(self.faults)


@asynccontextmanager
async def control_plane(options: ClusterOptions) -> AsyncIterator[EmbeddedControlPlane]:
    """Run a control plane, and yield it when its nodes are ready and pods can be created; raise ValueError for invalid flags."""
    has_seed = options.seed is not None
    clock = ClusterClock(start=determinism.START if has_seed else None)
    random: Random = SystemRandom() if options.seed is None else SeededRandom(options.seed)
    injectors: list[FaultInjector] = []
    stepped = SteppedWork(clock, lambda: any(each.is_busy for each in injectors)) if has_seed else None
    async with AsyncExitStack() as stack:
        if stepped is not None:
            stepped.let_time_pass()
            stack.push_async_callback(stepped.hold)
        log = stack.enter_context(capture_log())
        folder = stack.enter_context(temporary_folder("mockube-"))
        options = _with_files(options, folder)
        config, manager_config = _configure(options, folder)
        component_probes: dict[str, EmbeddedProbe] = {}

        async def read_controllers() -> bytes:
            return manager.status_sources.controllers()

        server = await stack.enter_async_context(
            run_server(
                config,
                folder,
                clock=clock,
                random=random.stream("server"),
                component_probes=component_probes,
                read_controllers=read_controllers,
                local_ports=manager_config.local_ports,
            )
        )
        observation = observation_of(server, manager_config)
        faults = observation.injector
        injectors.append(faults)
        manager = Manager(
            manager_config,
            clock=clock,
            random=random.stream("manager"),
            access=server.controllers,
            transport=server.transport,
        )
        component_probes |= dict.fromkeys(components(manager_config), partial(health_of, manager))
        await stack.enter_async_context(_run_manager(manager))
        stack.callback(faults.clear)
        manager_client = await stack.enter_async_context(connect_client(server, server.controllers, clock))
        client = await stack.enter_async_context(connect_client(server, server.admin, clock))
        await wait_for_pods(
            manager_client,
            manager_config.simulation.node_count,
            controllers=manager_config.controllers.controllers,
            seconds=START_SECONDS,
        )
        # Requests of reports are not recorded as the user's, and do not get the user's faults.
        requests = ObjectRequests(
            client,
            server.admin,
            reports=manager_client,
            server_clock=clock,
            clock=clock if has_seed else None,
        )
        if stepped is not None:
            await stepped.hold()
            stack.callback(stepped.let_time_pass)  # what ends the cluster may wait, too
        plane = EmbeddedControlPlane(
            clock=clock,
            server=server,
            requests=requests,
            recorder=observation.recorder,
            faults=faults,
            quiet_time=observation.quiet_time,
            log=log,
            controllers=manager_client,
            fork_problem=fork_problem(config, manager_config),
            stepped=stepped,
        )
        server.api_server.control.use_advance(plane.advance)
        yield plane


def _configure(options: ClusterOptions, folder: Path) -> tuple[ServerConfig, Config]:
    """Return the configurations of server and manager, and write the files that they name."""
    config = _parse_flags(lambda: parse_server_flags(options.server_arguments(), {}))
    if options.seed is not None and not ip_address(config.serving.bind_address).is_loopback:
        raise ValueError(
            f"--bind-address={config.serving.bind_address}: other machines reach the server, whose tokens and keys "
            "can be computed from the seed: give no seed, or a loopback address"
        )
    installed = _install(options, folder)
    manager_config = _parse_flags(lambda: _parse_manager_flags(options, folder, installed))
    return config, replace(manager_config, local_ports=None if options.seed is None else {})


def _with_files(options: ClusterOptions, folder: Path) -> ClusterOptions:
    """Add the flags of both programs for the release, and for the files in the folder."""
    minor = ("--kubernetes-version", options.minor)
    own_flags = (*temporary_server_flags(folder), *minor, f"--control-requests={MAX_CALLS}")
    if options.seed is not None:
        own_flags += ("--etcd-compaction-interval=0s",)  # its intervals are those of the machine
    return replace(
        options,
        flags=(*own_flags, *options.flags),
        manager_flags=(*minor, *_image_flags(options.images, folder), *options.manager_flags),
    )


def _install(options: ClusterOptions, folder: Path) -> Sequence[str]:
    """Write what kubeadm leaves on nodes; return the flags for it."""
    if not options.is_kubeadm:
        return ()
    from mockube.kubeadm.installation import problem_of, write_installation  # noqa: PLC0415 - most clusters are minimal

    if problem := problem_of(options):
        raise ValueError(problem)
    note = folder / "programs.log"
    note.write_text(_LOG_NOTE)
    logs = {"kube-apiserver": note, "kube-controller-manager": note}
    return write_installation(folder / "installation.json", options, logs, MEMORY)


def _parse_manager_flags(options: ClusterOptions, folder: Path, installed: Sequence[str]) -> Config:
    """Return the manager's configuration. It is the only one, so that leader election is off, but for static pods."""
    elects = ("--leader-elect-sole-candidate", "true") if installed else ("--leader-elect", "false")
    own_flags = (
        *("--kubeconfig", str(folder / KUBECONFIG), *elects),
        *("--controller-shutdown-timeout", f"{SHUTDOWN_SECONDS:g}s"),
    )
    arguments = (*own_flags, *installed, *options.manager_arguments())
    return parse_manager_flags(arguments, {}, NAMES, options.scheduler_plugins)


def _parse_flags(parse: Callable[[], T]) -> T:
    """Call a parser of flags; raise ValueError with its message if it exits."""
    error_output = io.StringIO()
    try:
        with redirect_stderr(error_output):
            result = parse()
    except SystemExit as error:
        raise ValueError(_without_usage(error_output.getvalue().strip())) from error
    sys.stderr.write(error_output.getvalue())  # about deprecated flags
    return result


def _without_usage(text: str) -> str:
    """Return what an argument parser reports, with the most similar flag for one that is unknown."""
    problem = text.rpartition(": error: ")[2]
    unknown = _UNKNOWN_FLAG.search(problem)
    if not unknown:
        return problem
    names = (
        flag
        for record in (*SERVER_SECTIONS.values(), *MANAGER_SECTIONS.values())
        for name, each in flags_of(record).items()
        if not each.deprecated
        for flag in flag_names(name, each)
    )
    return problem + did_you_mean(unknown[1], names)


_PROCESSES: Final = "--container-runtime=process"


def _image_flags(images: Mapping[str, Any] | Path | None, folder: Path) -> Sequence[str]:
    if images is None:
        return ()
    if isinstance(images, Path):
        return _PROCESSES, f"--images={images}"
    path, is_simulated = folder / "images.yaml", bool(images) and all(map(is_description, images.values()))
    tree = images if is_simulated else {"folder": str(Path.cwd()), "images": images}
    path.write_bytes(orjson.dumps(tree, option=orjson.OPT_NON_STR_KEYS))  # JSON is YAML, too
    return (f"--images={path}",) if is_simulated else (_PROCESSES, f"--images={path}")


@asynccontextmanager
async def _run_manager(manager: Manager) -> AsyncIterator[None]:
    """Run the manager during the block; its failure cancels the block."""
    async with asyncio.TaskGroup() as group:
        manager_task = start("manager", manager.run(), group=group, endless=True)
        yield
        manager_task.cancel()


def connect_client(
    server: EmbeddedServer, access: Access, clock: Clock
) -> AbstractAsyncContextManager[Client]:
    return connect(ClientOptions(access=access, clock=clock, agent=AGENT, transport=server.transport))
