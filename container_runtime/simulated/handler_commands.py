"""The command of a probe or a hook in a simulated container, in real time, with the network.

Its result is None where it is unknown: a program is not simulated, unless such programs fail; a file or a variable may be the
image's; or it sends requests to the pod's own server, which is not simulated.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.hosts import is_loopback
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import timeout
from mockube.container_runtime.behavior import KILLED, NOT_FOUND, CommandResult
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.pod_script import Script, script_of
from mockube.container_runtime.start_errors import StartError
from mockube.network.services import Outcome

from .client_pace import ClientPace
from .connections.port_answers import OpenPort
from .execution import in_container, run_to_end
from .network.calls import Connect, HttpRequest, NetworkCaller, Reply, decode_call, decode_reply, encode_reply
from .predictions import is_closed
from .programs.commands import host_of
from .programs.handlers import MAX_OUTPUT, UnknownFile, ask_image, end_of_unknown
from .shell.invocation import run_command
from .shell.memory import OutOfMemory
from .shell.process import OtherProcess, UnknownProgram
from .shell.syntax import ShellSyntaxError
from .shell.vfs.file_system import FileSystem
from .shell.vfs.unknown_files import UnknownFiles

_URL: Final = re.compile(r"/https?:(?:/|$)")
_MAX_ANSWERS: Final = 5
"""The responses of a server that is not simulated after which the result of a command is unknown."""


class HandlerRun(Struct, frozen=True, kw_only=True):
    """The run of a container in which a command is executed."""

    pod: ReadOnlyTree
    container: ReadOnlyTree
    references: References
    images: ImageTable
    files: FileSystem
    unknown_folders: tuple[str, ...]
    """The folders, with final slashes, into which programs that are not simulated may write; "/" for all of the container."""
    fails_unknown: bool
    """Whether programs that are not simulated fail."""
    on_unknown: Callable[[str], None]
    """Called with a program that is not simulated."""
    open_port: Callable[[int], OpenPort | None]
    """Returns what listens on a port of the pod."""
    has_configured_server: bool
    """Whether the pod has a server whose ports its configuration says."""
    processes: Callable[[Mapping[str, str]], tuple[OtherProcess, ...]] = lambda _: ()
    """Returns what runs in the container, given its variables."""


class _UnknownOfRun(UnknownFiles):
    """The unknown files of a running container. A path that has no entry, and may be one of the image, raises `UnknownFile`."""

    def __init__(self, unknown: UnknownFiles, folders: tuple[str, ...]) -> None:
        """Programs that are not simulated may write into the `folders`, but not into volumes of API objects."""
        self.__dict__ = unknown.__dict__  # What the command removes is removed for the container.
        self._unknown_folders = folders

    def hides(self, path: str) -> bool:
        return super().hides(path) and not f"{path}/".startswith(self._unknown_folders)

    def may_exist(self, path: str) -> bool:
        if _URL.search(path):
            return False  # The pattern of a shell, as in curl http://web/?a=b; no image has such a folder.
        in_unknown_folder = path.startswith(self._unknown_folders) and not self.is_in_volume(path)
        if self.is_partial and (in_unknown_folder or super().may_exist(path)):
            raise UnknownFile(path)
        return False

    def is_present(self, path: str) -> bool:
        return self.may_exist(path)

    def check_listing(self, path: str) -> None:
        self.may_exist(f"{path.rstrip('/')}/*")


class _Output:
    """The first bytes of a command's output; it has no input."""

    stdin = None

    def __init__(self) -> None:
        self._data = bytearray()

    async def write(self, _: int, data: bytes) -> None:
        self._data += data[: MAX_OUTPUT - len(self._data)]

    def text(self) -> str:
        return self._data.decode("utf-8", "replace")


class _OwnServer:
    """Calls of the network by a command; notes whether they reached what is not simulated: the server of the command's own pod.

    Clients in other pods get an answer from such a server all the same.
    """

    def __init__(self, run: HandlerRun, script: Script, call: NetworkCaller) -> None:
        self._run = run
        self._pod = pod = run.pod
        self._script = script
        self._call = call
        status = pod.get("status") or {}
        self._addresses = {entry["ip"] for entry in status.get("podIPs") or ()}
        self.answers = 0
        """How many answers came from what is not simulated."""

    async def call(self, request: bytes) -> bytes:
        reply = await self._call(request)
        call = decode_call(request)
        is_own = isinstance(call, Connect | HttpRequest) and (
            is_loopback(call.address) or call.address in self._addresses
        )
        if not is_own or not isinstance(call, Connect | HttpRequest):
            return reply
        outcome = decode_reply(reply).outcome
        opened = self._run.open_port(call.port)
        is_unknown = opened is not None and opened.behavior is None and opened.configured is None
        if is_unknown and str(call.port) not in self._script.answers:
            self.answers += 1
        may_listen = (
            outcome == Outcome.REFUSED.value
            and not self._run.has_configured_server
            and not is_closed(self._run.images, self._pod, call.port, self._script)
        )
        if may_listen or self.answers > _MAX_ANSWERS:
            return encode_reply(Reply(outcome=outcome, problem=f"the server on port {call.port}"))
        return reply


async def run_handler_command(
    run: HandlerRun, argv: list[str], clock: Clock, network: NetworkCaller, *, limit: float
) -> CommandResult | None:
    """Run a command for at most `limit` seconds; return its result, or None if it is unknown.

    A command that does not end within the limit lasts infinitely long.
    """
    pod, container = run.pod, run.container
    script = script_of(meta.annotations(pod))
    environment = environment_of(pod, container, run.references)
    files = run.files.view(unknown=_UnknownOfRun(run.files.unknown, run.unknown_folders))
    host = host_of(run.images, pod, container, run.references, clock.now(), files=files)
    host.now, host.is_strict, host.ask_variable = clock.now, True, ask_image
    host.join(partial(run.processes, environment))
    execution = run_command(host, argv, environment, container.get("workingDir") or "/")
    own_server = _OwnServer(run, script, network)
    output, begin, code = _Output(), clock.monotonic(), KILLED
    try:
        async with timeout(clock, limit):
            with suppress(OutOfMemory):
                code = await run_to_end(
                    in_container(execution, files), output, ClientPace(clock), own_server.call
                )
    except StartError as error:
        return CommandResult(exit_code=NOT_FOUND, start_error=str(error), seconds=clock.monotonic() - begin)
    except UnknownProgram as error:
        if not isinstance(error, UnknownFile):
            run.on_unknown(str(error))
        return end_of_unknown(error, clock.monotonic() - begin, fails=run.fails_unknown)
    except (ShellSyntaxError, RecursionError):
        return None
    except TimeoutError:
        return None if own_server.answers else CommandResult(exit_code=0, seconds=inf)
    if code and own_server.answers:
        return None
    if code and host.unlisted:
        run.on_unknown(host.unlisted)
        return end_of_unknown(
            UnknownProgram(host.unlisted), clock.monotonic() - begin, fails=run.fails_unknown
        )
    return CommandResult(exit_code=code, output=output.text(), seconds=clock.monotonic() - begin)
