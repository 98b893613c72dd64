"""envoy: reads its bootstrap configuration, and serves until it is stopped. What it answers is in `simulated.configured.envoy`."""

from collections.abc import Sequence
from functools import partial
from math import inf
from typing import Final

from mockube.container_runtime.simulated.configured.contract import RunningServer, ServedConfiguration
from mockube.container_runtime.simulated.configured.envoy.answering import answer
from mockube.container_runtime.simulated.configured.envoy.configuration import (
    EnvoyConfiguration,
    EnvoyConfigurationError,
    configuration_of,
)
from mockube.container_runtime.simulated.shell.filesystem import FileError
from mockube.container_runtime.simulated.shell.process import (
    Process,
    Run,
    Sleep,
    Steps,
    UnknownProgram,
    write_text,
)

_FLAGS: Final = frozenset(
    {"--disable-hot-restart", "--enable-fine-grain-logging", "--allow-unknown-static-fields", "--reject-unknown-dynamic-fields", "--hot-restart-version",
     "--enable-mutex-tracing", "--ignore-unknown-dynamic-fields", "--skip-deprecated-logs", "--cpuset-threads", "--enable-core-dump"}
)  # fmt: skip
"""The options without a value."""


def envoy(process: Process) -> Run:
    """Run envoy. Where nothing has its answers, as before a container runs, it is not simulated."""
    server = process.host.server
    if server is None:
        raise UnknownProgram(process.name)
    options = _options(process.arguments)
    if "--version" in options:
        yield write_text(
            f"\n{process.name}  version: {_version_of(process.host.image)}/Clean/RELEASE/BoringSSL\n\n"
        )
        return 0
    path = options.get("-c") or options.get("--config-path") or ""
    text = options.get("--config-yaml") or ""
    server.is_starting = True
    try:
        return (yield from _run(process, server, path, text, options.get("--mode") or "serve"))
    finally:
        server.is_starting = False


def _options(arguments: Sequence[str]) -> dict[str, str]:
    options, rest = dict[str, str](), list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not equals and name not in _FLAGS and rest and not rest[0].startswith("--"):
            value = rest.pop(0)
        options[name] = value
    return options


def _run(process: Process, server: RunningServer, path: str, text: str, mode: str) -> Run:
    yield from _log(process, "info", "initializing epoch 0 (base id=0, hot restart version=11.104)")
    try:
        configuration = _read(process, path, text)
    except EnvoyConfigurationError as error:
        if str(error).startswith("At least one of"):
            yield from _log(process, "critical", f"error initializing config '  ': {error}")
        else:
            yield from _log(process, "critical", f"error initializing configuration '{path}': {error}")
        yield from _log(process, "info", "exiting")
        yield process.report(str(error))
        return 1
    if mode == "validate":
        yield write_text(f"configuration '{path}' OK\n")
        return 0
    if server.is_running:
        first = next(iter(configuration.listeners), configuration.admin_port)
        problem = f"cannot bind '0.0.0.0:{first}': Address already in use"
        yield from _log(process, "critical", f"error initializing configuration '{path}': {problem}")
        yield from _log(process, "info", "exiting")
        yield process.report(problem)
        return 1
    _accept(server, configuration)
    count = len(configuration.clusters)
    yield from _log(process, "info", f"loading {count} cluster(s)", "config")
    yield from _log(process, "info", f"loading {len(configuration.listeners)} listener(s)", "config")
    yield from _log(process, "info", "all clusters initialized. initializing init manager")
    yield from _log(process, "info", "all dependencies initialized. starting workers", "config")
    yield from _log(process, "info", "starting main dispatch loop")
    yield Sleep(inf)
    return 0


def _read(process: Process, path: str, text: str) -> EnvoyConfiguration:
    if text:
        return configuration_of(text.encode())
    if not path:
        raise EnvoyConfigurationError(
            "At least one of --config-path or --config-yaml or Options::configProto() should be non-empty"
        )
    full = process.path(path)
    try:
        data = process.host.files.read(full)
    except FileError as error:
        raise EnvoyConfigurationError(f"unable to read file: {path}") from error
    if not data and not process.host.files.exists(full):
        raise EnvoyConfigurationError(f"unable to read file: {path}")
    return configuration_of(data)


def _accept(server: RunningServer, configuration: EnvoyConfiguration) -> None:
    listeners = configuration.listeners
    ports = {port: each.tls for port, each in listeners.items() if not each.unknown}
    if configuration.admin_port:
        ports[configuration.admin_port] = False
    server.accept(
        ServedConfiguration(
            answer=partial(answer, configuration),
            ports=ports,
            unknown_ports={port: each.unknown for port, each in listeners.items() if each.unknown},
            not_simulated=configuration.not_simulated,
        )
    )


def _log(process: Process, level: str, text: str, component: str = "main") -> Steps:
    now = process.host.now_running(is_shown=True)
    place = "source/server/server.cc" if component == "main" else "source/server/configuration_impl.cc"
    stamp = f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03}"
    yield process.report(f"[{stamp}][{process.pid or 1}][{level}][{component}] [{place}] {text}")


def _version_of(image: str) -> str:
    tag = image.rpartition("/")[2].partition(":")[2].lstrip("v")
    return tag.removeprefix("distroless-v") or "1.36.0"
