"""CoreDNS: reads its Corefile, serves names until it is stopped, and reads the file again if the plugin `reload` says so.

What it answers is in `simulated.network.coredns`; the network has the Corefile of each server that runs.
"""

import hashlib
from collections.abc import Generator
from typing import Final

from mockube.container_runtime.simulated.network.calls import ServeNames
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Process,
    Run,
    Sleep,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.network.corefile import MAX_BYTES, Corefile, CorefileError, parse

from . import network

_DEFAULT: Final = "Corefile"
_RELOAD_SECONDS: Final = 30.0
"""The interval of the plugin `reload`."""


def coredns(process: Process) -> Run:
    path, words = _DEFAULT, list(process.arguments)
    while words:
        option, equals, value = words.pop(0).lstrip("-").partition("=")
        if option in ("conf", "dns.port", "p", "pidfile"):
            value = value if equals else (words.pop(0) if words else "")
            path = value if option == "conf" else path
        elif option == "version":
            yield write_text(f"{_version(process)}\nlinux/amd64, go1.25\n")
            return 0
    try:
        text = _read(process, path)
        corefile = parse(text, path)
    except (FileError, CorefileError) as error:
        prefix = "" if isinstance(error, CorefileError) else f"loading Caddyfile via flag: open {path}: "
        message = str(error) if isinstance(error, CorefileError) else str(error).lower()
        yield process.report(f"{prefix}{message}")
        return 1
    zones = dict.fromkeys((zone, port) for block in corefile.blocks for zone, port in block.zones)
    yield write_text("".join(f"{zone}.:{port}\n" for zone, port in zones if port))
    if corefile.has_reload:
        yield write_text(_hash_line(text))
    yield write_text(f"{_version(process)}\nlinux/amd64, go1.25\n")
    yield from network.call(process, ServeNames(corefile=text, path=path))
    while True:
        yield Sleep(_RELOAD_SECONDS, is_routine=True)
        if corefile.has_reload:
            text, corefile = yield from _reload(process, path, text, corefile)


def _reload(
    process: Process, path: str, text: str, corefile: Corefile
) -> Generator[Effect, bytes | None, tuple[str, Corefile]]:
    """Read the file again, and serve by it if it has changed; one with a mistake changes nothing."""
    try:
        new_text = _read(process, path)
    except FileError:
        return text, corefile
    if new_text == text:
        return text, corefile
    yield write_text("[INFO] Reloading\n")
    try:
        new = parse(new_text, path)
    except CorefileError as error:
        yield write_text(
            f"[ERROR] Restart failed: {error}\n[ERROR] plugin/reload: Corefile changed but reload failed: {error}\n"
        )
        return text, corefile
    yield from network.call(process, ServeNames(corefile=new_text, path=path))
    yield write_text(f"{_hash_line(new_text)}[INFO] Reloading complete\n")
    return new_text, new


def _read(process: Process, path: str) -> str:
    data = process.host.files.read(process.path(path))
    if len(data) > MAX_BYTES:
        raise UnknownProgram(f"{process.name} with a Corefile of {len(data)} bytes")
    return data.decode("utf-8", "replace")


def _hash_line(text: str) -> str:
    return (
        f"[INFO] plugin/reload: Running configuration SHA512 = {hashlib.sha512(text.encode()).hexdigest()}\n"
    )


def _version(process: Process) -> str:
    return f"CoreDNS-{process.host.image.rpartition(':')[2].removeprefix('v') or '1.14.6'}"
