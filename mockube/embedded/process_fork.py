"""Fork a control plane with its whole process: what the loop does before, and what it does in the new process.

The new process has one thread, that of the loop, which goes on in it: with all objects, caches, queues, informers and timers,
and without what belongs to the parent: its port, its connections, its files, its requests.
"""

import asyncio
import gc
import os
import signal
import socket
import traceback
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from mockube.apimachinery.status import ApiError, NotFound
from mockube.apiserver.control.faults import exempt
from mockube.apiserver.request.hooks import Proceed
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response
from mockube.client.kinds import CONFIG_MAPS
from mockube.component_base.clock import QUIET_TURNS, Clock
from mockube.component_base.forkable_loop import ForkableLoop
from mockube.component_base.inherited_descriptors import replace_descriptors
from mockube.component_base.launcher import die_with_parent
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.process_fork import (
    fork_beside_threads,
    reap_at_end,
    reset_signals,
)
from mockube.component_base.supervision import start
from mockube.failure import Failure
from mockube.kubelet.kubelets import ENDPOINT

from . import fork_messages as messages
from .background_loop import BackgroundContext
from .control_plane import EmbeddedControlPlane
from .determinism import SteppedWork
from .direct import DirectClient
from .fork_commands import CommandRunner
from .plane import ForkableControlPlane
from .serving import EmbeddedServer

BUSY_SECONDS: Final = 0.02
"""How long a fork waits until no request is in progress. It need not: one that is continues in both processes."""
THREAD_SECONDS: Final = 10.0
"""How long a fork waits for the work of threads, which do not exist in the new process."""
PUBLISH_SECONDS: Final = 3.0
"""The time after which the kubelets' address is written into their ConfigMap."""
SPREAD_SECONDS: Final = 5.0
"""Over how many seconds the routine of forks is spread: half of the time after which Leases are renewed, and far less than they last."""
IS_FORK: Final = "this process is a fork of the one that was asked for a fork"
_GOLDEN_RATIO: Final = 0.6180339887
_READ: Final = 1 << 16
_OUTPUTS: Final = (1, 2)
"""The descriptors of the standard output and the standard error output."""


async def fork(
    context: BackgroundContext[EmbeddedControlPlane],
    plane: EmbeddedControlPlane,
    theirs: socket.socket,
    kubelets: tuple[str, int] | None = None,
) -> int:
    """Fork the process, and return the id of the new one, which gets this end of a pair of sockets."""
    pid = await fork_process(
        plane,
        lambda address: ForkServer(plane, theirs).start(context, address),
        at_death=signal.SIGKILL,
        kubelets=kubelets,
    )
    if pid:
        return pid
    try:
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        return await never  # nobody waits for it in this process
    finally:
        traceback.print_exc()
        os._exit(1)


async def fork_process(
    plane: ForkableControlPlane,
    begin: Callable[[tuple[str, int]], None],
    *,
    at_death: signal.Signals,
    kubelets: tuple[str, int] | None = None,
) -> int:
    """Fork the process, and return the id of the new one; 0 in the new one, after `begin` was called with the address of the kubelets.

    The new process gets the signal `at_death` when this one dies. `kubelets` is that address, if this process knows it.
    """
    if plane.fork_problem:
        raise Failure(f"the cluster cannot be forked: {plane.fork_problem}")
    this_process = os.getpid()
    if kubelets is None:
        kubelets = await _kubelets_address(plane)
    await _wait_until_quiet(plane)
    if os.getpid() != this_process:
        raise Failure(IS_FORK)  # another fork was made meanwhile, and this is its copy of the caller
    try:
        pid = fork_beside_threads()
    except OSError as error:
        raise Failure(f"the cluster cannot be forked: {error.strerror}") from error
    if not pid:
        try:
            reset_signals()
            die_with_parent(this_process, at_death)
            begin(kubelets)
        except BaseException:  # noqa: BLE001 - the frames of the parent must not be unwound
            traceback.print_exc()
            os._exit(1)
    return pid


def become_fork(
    context: BackgroundContext[Any],
    plane: ForkableControlPlane,
    kubelets: tuple[str, int],
    *,
    own_descriptors: Collection[int],
) -> asyncio.Task[None]:
    """Make this process independent of its parent, and serve: at new ports, without descriptors of the parent but `own_descriptors`.

    `kubelets` is the address of the parent's kubelets. The caller holds the task that is returned.
    """
    gc.freeze()  # a collection would copy all memory that is shared with the parent
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a terminal sends is for the parent
    server, (host, port) = plane.server, kubelets
    ports = replace_descriptors(own_descriptors, {server.listener.port, port})
    context.continue_after_fork()
    if plane.stepped is not None:
        _take_turns(plane.server, plane.stepped)
    if plane.clock.rate:  # one that stands still runs callbacks only as far as it is advanced
        for clock in plane.clock.deferrables:
            clock.postpone(spread_seconds(os.getpid()))
    _move(server.api_server.registry.moved_ports, ports)
    published = (
        0 if plane.stepped is not None else ports.get(port, 0)
    )  # with a seed, it is the same in all processes
    return start("fork/kubelets", _publish(plane, host, published, os.getpid()))


def _take_turns(server: EmbeddedServer, stepped: SteppedWork) -> None:
    """Let each request of another process wait until nothing is left to do."""
    is_in_turn = stepped.is_fork
    stepped.continue_after_fork()
    if is_in_turn:
        return

    async def in_turn(request: Request, proceed: Proceed) -> Response:
        if not isinstance(request.client, DirectClient):
            await stepped.wait_for_turn()
        return await proceed(request)

    server.api_server.context.hooks.before_authentication.add(in_turn)


async def _kubelets_address(plane: ForkableControlPlane) -> tuple[str, int]:
    """Return the address and the port of the simulated kubelets; 0 if there are none."""
    try:
        with exempt():
            config_map = await plane.controllers.get(CONFIG_MAPS, ENDPOINT)
    except NotFound:
        return "", 0
    registry, address = plane.server.api_server.registry, (config_map.get("data") or {}).get("address") or ""
    host, _, port = registry.local_ports.get(address, address).rpartition(":")
    published = int(port) if port.isdigit() else 0
    return host, registry.moved_ports.get(published, published)


async def _wait_until_quiet(plane: ForkableControlPlane) -> None:
    """Wait until no thread works, and for a short time until no request is in progress."""
    work = cast("ForkableLoop", asyncio.get_running_loop()).thread_work
    clock: Clock = plane.clock.real
    began, quiet_turns = clock.monotonic(), 0
    while quiet_turns < QUIET_TURNS:
        await yield_to_loop()
        waited = clock.monotonic() - began
        if work and waited >= THREAD_SECONDS:
            raise Failure(f"the cluster cannot be forked: threads have worked for {THREAD_SECONDS:g} s")
        is_quiet = not work and (not plane.faults.is_busy or waited >= BUSY_SECONDS)
        quiet_turns = quiet_turns + 1 if is_quiet else 0


class ForkServer:
    """The new process: it serves the cluster, and executes the commands of its handle until that ends."""

    def __init__(self, plane: EmbeddedControlPlane, handle: socket.socket) -> None:
        self._plane = plane
        self._handle = handle
        self._runner = CommandRunner(plane)
        self._frames = messages.FrameBuffer()
        self._descriptors: deque[int] = deque()
        self._commands: asyncio.Queue[bytes] = asyncio.Queue()
        self._pid: int
        self._context: BackgroundContext[EmbeddedControlPlane]
        self._task: asyncio.Task[None]
        self._publishing: asyncio.Task[None]
        self._kubelets: tuple[str, int]
        """The address of the kubelets in this process: a request for it at each fork would copy half of the memory that a fork copies."""

    def start(self, context: BackgroundContext[EmbeddedControlPlane], kubelets: tuple[str, int]) -> None:
        """Serve, and execute commands; `kubelets` is the address of the parent's kubelets."""
        self._pid = os.getpid()
        descriptors = {*_OUTPUTS, self._handle.fileno()}
        self._publishing = become_fork(context, self._plane, kubelets, own_descriptors=descriptors)
        host, port = kubelets
        self._kubelets = host, self._plane.server.api_server.registry.moved_ports.get(port, 0)
        self._context = context
        self._task = start("fork", self._run())

    async def _run(self) -> None:
        """Execute commands."""
        try:
            plane = self._plane
            await self._send(
                messages.Started(port=plane.server.listener.port, has_steps=plane.stepped is not None)
            )
            asyncio.get_running_loop().add_reader(self._handle, self._on_readable)
            while True:
                await self._send(await self._execute(messages.COMMANDS.decode(await self._commands.get())))
        finally:
            traceback.print_exc()
            os._exit(1)

    async def _execute(self, command: messages.ForkCommand) -> messages.Response:
        if not isinstance(command, messages.Fork):
            return await self._runner.run(command)
        with socket.socket(fileno=self._descriptors.popleft()) as theirs:
            try:
                pid = await fork(self._context, self._plane, theirs, self._kubelets)
            except Failure as error:
                return messages.Refused(message=str(error))
        reap_at_end(pid)
        return messages.result_of(pid)

    async def _send(self, response: messages.Response) -> None:
        self._handle.settimeout(0)
        await asyncio.get_running_loop().sock_sendall(self._handle, messages.encode_frame(response))

    def _on_readable(self) -> None:
        if self._pid != os.getpid():  # in a fork of this process, which has another server
            asyncio.get_running_loop().remove_reader(self._handle)
            return
        if self._plane.stepped is not None:
            self._plane.stepped.commands += 1
        try:
            data, descriptors, _, _ = socket.recv_fds(self._handle, _READ, 1)
        except BlockingIOError:
            return
        except OSError:
            os._exit(0)
        if not data:
            os._exit(0)  # the handle was closed, or its process has ended
        self._descriptors += descriptors
        for frame in self._frames.receive(data):
            self._commands.put_nowait(frame)


async def _publish(plane: ForkableControlPlane, host: str, port: int, pid: int) -> None:
    """Write the new address of the kubelets: later, because few forks live so long, and the server knows it already."""
    await plane.clock.real.sleep(PUBLISH_SECONDS)
    if port and pid == os.getpid():
        with exempt(), suppress(ApiError):
            body = {"data": {"address": f"{host}:{port}"}}
            await plane.controllers.patch(CONFIG_MAPS, ENDPOINT, body)


def spread_seconds(pid: int) -> float:
    """Return how much later the routine of a fork runs: all forks would renew and check at the same moments otherwise.

    The multiples of the golden ratio fill an interval evenly, whatever the number of processes.
    """
    return pid * _GOLDEN_RATIO % 1.0 * SPREAD_SECONDS


def _move(moved: dict[int, int], ports: Mapping[int, int]) -> None:
    """Add new ports to those that forks have moved already."""
    moved |= {published: ports.get(current, current) for published, current in moved.items()}
    moved |= ports
