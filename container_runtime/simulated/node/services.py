"""Requests of the programs of a node to the services of its machine: the container runtime, systemd and its journal."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson

from mockube.container_runtime.pod_log_paths import LOGS, place_of_log
from mockube.container_runtime.simulated.network.calls import NodeRequest, decode_reply, encode_call
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    NetworkCall,
    Process,
    Steps,
    UnknownProgram,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.path_walk import tree_entries

from .node_files import SystemInodes

Answer = Generator[Effect, bytes | None, Any]
_LOG_FOLDER: Final = "/var/log"


class ServiceError(Exception):
    """A service refuses a request; the message is the service's."""


def ask(process: Process, service: str, arguments: Mapping[str, Any] | None = None) -> Answer:
    """Return the answer of a service; raise `ServiceError` if it refuses."""
    request = NodeRequest(service=service, arguments=orjson.dumps(arguments or {}))
    data = yield NetworkCall(encode_call(request))
    if not data:
        raise UnknownProgram(process.name)
    reply = decode_reply(data)
    if not reply.is_open:
        raise ServiceError(reply.body.decode())
    return orjson.loads(reply.body)


def update_logs(process: Process) -> Steps:
    """Read the logs of containers before a program that may look at them: one with a path, or in a folder, of logs."""
    files = process.host.files
    if not isinstance(files.inodes, SystemInodes):
        return
    paths = [process.path(argument) for argument in process.arguments if not argument.startswith("-")]
    resolved = [*_resolved_logs(files, (*paths, process.directory))]
    if not resolved:
        return
    is_wanted = tuple(f"{path.rstrip('/')}/" for path in resolved)
    log_paths = [
        path
        for path, _ in tree_entries(files, LOGS)
        if place_of_log(path) and f"{path}/".startswith(is_wanted)
    ]
    if not log_paths:
        return
    try:
        texts: dict[str, str] = yield from ask(process, "logs", {"paths": log_paths})
    except ServiceError:
        return
    for path, text in texts.items():
        with suppress(FileError):  # there is no space for so many logs
            files.inodes.write_by_system(path, text.encode("utf-8", "surrogateescape"))


def _resolved_logs(files: FileSystem, paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths below the folder of logs without symbolic links; the program reports those that lead nowhere."""
    for path in paths:
        if path.startswith(_LOG_FOLDER):
            with suppress(FileError):
                yield files.resolve(path)
