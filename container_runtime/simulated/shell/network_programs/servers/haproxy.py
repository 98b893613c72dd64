"""haproxy: reads its configuration, looks up its servers, and serves until it is stopped.

What it answers is in `simulated.configured.haproxy`.
"""

from collections.abc import Generator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Final

from mockube.apimachinery.hosts import is_address
from mockube.container_runtime.simulated.configured.contract import RunningServer, ServedConfiguration
from mockube.container_runtime.simulated.configured.haproxy.answering import answer
from mockube.container_runtime.simulated.configured.haproxy.configuration import (
    HaproxyConfiguration,
    HaproxyConfigurationError,
    configuration_of,
)
from mockube.container_runtime.simulated.shell.filesystem import FileError
from mockube.container_runtime.simulated.shell.network_programs import network
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Process,
    Run,
    Sleep,
    Steps,
    UnknownProgram,
    write_text,
)

from .configuration_files import read_file

_LATEST: Final = "3.3.0"
_WITH_VALUE: Final = frozenset({"-f", "-n", "-N", "-p", "-m", "-C", "-L", "-S", "-x", "-cc"})
_MAX_SERVERS: Final = 1000


def haproxy(process: Process) -> Run:
    """Run haproxy. Where nothing has its answers, as before a container runs, it is not simulated."""
    server = process.host.server
    if server is None:
        raise UnknownProgram(process.name)
    arguments = [*process.arguments]
    if arguments[:1] in (["-v"], ["-vv"], ["-version"]):
        yield write_text(f"HAProxy version {_version_of(process.host.image)} - https://haproxy.org/\n")
        return 0
    paths, flags = list[str](), set[str]()
    while arguments:
        word = arguments.pop(0)
        if word == "--":
            paths += arguments
            break
        if word in _WITH_VALUE:
            value = arguments.pop(0) if arguments else ""
            paths += [value] if word == "-f" else []
        else:
            flags.add(word)
    if not paths:
        yield write_text(
            f"HAProxy version {_version_of(process.host.image)} - https://haproxy.org/\n"
            "Usage : haproxy [-f <cfgfile|cfgdir>]* [ -vdVD ] [ -n <maxconn> ] [ -N <maxpconn> ]\n"
        )
        return 1
    server.is_starting = True
    try:
        return (yield from _Haproxy(process, server, flags).run(paths))
    finally:
        server.is_starting = False


class _Haproxy:
    def __init__(self, process: Process, server: RunningServer, flags: set[str]) -> None:
        self._process = process
        self._server = server
        self._flags = flags
        self._has_notices = False

    def run(self, paths: Sequence[str]) -> Run:
        is_check = "-c" in self._flags
        try:
            name, text = self._read(paths)
            configuration = configuration_of(name, text, self._process.environment, self._has_file)
            addresses = yield from self._look_up(configuration, name)
        except HaproxyConfigurationError as error:
            yield from self._report(
                [
                    *(("WARNING", text) for text in error.warnings),
                    *(("ALERT", f"config : {text}") for text in error.alerts),
                ]
            )
            return 1
        yield from self._report([("WARNING", text) for text in configuration.warnings])
        if not configuration.ports:
            text = "Configuration file has no error but will not start (no listener) => exit(2).\n"
            yield from [write_text(text)] if is_check else []
            if not is_check:
                yield from self._report(
                    [
                        (
                            "ALERT",
                            "[haproxy.main()] No enabled listener found (check for 'bind' directives) ! Exiting.",
                        )
                    ]
                )
            return 2
        if is_check:
            if configuration.warnings:
                yield write_text("Warnings were found.\n")
            yield write_text("Configuration file is valid\n")
            return 0
        return (yield from self._serve(configuration, addresses))

    def _read(self, paths: Sequence[str]) -> tuple[str, str]:
        files, texts = self._process.host.files, list[str]()
        expanded: list[str] = []
        for path in map(self._process.path, paths):
            if self._has_file(path) and files.entry(path).is_directory:
                expanded += sorted(
                    f"{path.rstrip('/')}/{name}" for name in files.children(path) if name.endswith(".cfg")
                )
            else:
                expanded.append(path)
        for path in expanded:
            try:
                texts.append(read_file(files, path))
            except OSError as error:
                raise HaproxyConfigurationError(
                    [f"Cannot open configuration file/directory {path} : {error.strerror}"]
                ) from error
        return expanded[0] if expanded else paths[0], "".join(texts)

    def _has_file(self, path: str) -> bool:
        try:
            return self._process.host.files.exists(path)
        except FileError:
            return False

    def _look_up(
        self, configuration: HaproxyConfiguration, name: str
    ) -> Generator[Effect, bytes | None, Mapping[str, tuple[str, ...]]]:
        """Return the addresses of the servers; raise an error for a name that does not exist."""
        addresses: dict[str, tuple[str, ...]] = {}
        problems = list[str]()
        servers = [(proxy, server) for proxy in configuration.proxies.values() for server in proxy.servers]
        for proxy, server in servers[:_MAX_SERVERS]:
            if is_address(server.host) or server.is_resolved_later or server.host in addresses:
                continue
            try:
                resolution = yield from network.resolve(self._process, server.host)
            except UnknownProgram as error:
                self._server.on_not_simulated(str(error))
                addresses[server.host] = ()
                continue
            addresses[server.host] = resolution.addresses
            if not resolution.addresses:
                problems.append(
                    f"[{name}:{server.line}] : 'server {proxy.name}/{server.name}' : could not resolve address '{server.host}'."
                )
        if problems:
            raise HaproxyConfigurationError([*problems, "Failed to initialize server(s) addr."])
        return addresses

    def _serve(self, configuration: HaproxyConfiguration, addresses: Mapping[str, tuple[str, ...]]) -> Run:
        if self._server.is_running:
            lines = [
                (
                    "ALERT",
                    f"Starting frontend {proxy.name}: cannot bind socket (Address already in use) [0.0.0.0:{port}]",
                )
                for port, (proxy, _) in configuration.ports.items()
            ]
            yield from self._report(
                [
                    *lines,
                    ("ALERT", "[haproxy.main()] Some protocols failed to start their listeners! Exiting."),
                ]
            )
            return 1
        ports = configuration.ports
        self._server.accept(
            ServedConfiguration(
                answer=partial(answer, configuration),
                ports={port: bind.tls for port, (proxy, bind) in ports.items() if proxy.mode == "http"},
                unknown_ports={
                    port: f"the mode {proxy.mode} of haproxy"
                    for port, (proxy, _) in ports.items()
                    if proxy.mode != "http"
                },
                addresses=addresses,
                not_simulated=tuple(configuration.not_simulated),
            )
        )
        self._has_notices = True
        yield from self._report([("NOTICE", "New worker (8) forked"), ("NOTICE", "Loading success.")])
        yield Sleep(inf)
        return 0

    def _report(self, lines: Sequence[tuple[str, str]]) -> Steps:
        """Write lines to the standard error; the first alert or warning follows the version."""
        pid = self._process.pid or 1
        if lines and not self._has_notices:
            self._has_notices = True
            lines = [
                ("NOTICE", f"haproxy version is {_version_of(self._process.host.image)}"),
                ("NOTICE", "path to executable is /usr/local/sbin/haproxy"),
                *lines,
            ]
        for level, text in lines:
            yield self._process.report(f"{f'[{level}]':<10} ({pid}) : {text}")


def _version_of(image: str) -> str:
    """Return the version of HAProxy in an image, such as 2.9.7 for haproxy:2.9.7-alpine, or that of the latest one."""
    tag = image.rpartition("/")[2].partition(":")[2].partition("-")[0]
    if not tag.replace(".", "").isdecimal() or "." not in tag:
        return _LATEST
    return tag if tag.count(".") == 2 else f"{tag}.0"
