"""nginx: reads its configuration, opens its logs, looks up the names of upstreams, and serves until it is stopped.

What it answers is in `answering`; the requests of clients reach it by the ports of its container.
"""

import errno
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from posixpath import dirname, join
from typing import Final

from mockube.container_runtime.simulated.programs.configuration_lines import matching_paths
from mockube.container_runtime.simulated.server_contract import RunningServer, ServedConfiguration
from mockube.container_runtime.simulated.shell.access import WRITE
from mockube.container_runtime.simulated.shell.network_programs import network
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Run,
    Sleep,
    Steps,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.programs.installed_servers import server_of
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.extras.servers.configuration_files import NUMBERS, open_log, read_file, worker_of, write_to_log

from .answering import answer
from .configuration import (
    ERROR_LOG,
    PREFIX,
    Configuration,
    configuration_of,
    full_path,
)
from .parser import ConfigurationError, Directive, parse

_CONFIGURATION: Final = f"{PREFIX}/nginx.conf"
_LEVELS: Final = ("emerg", "alert", "crit", "error", "warn", "notice", "info", "debug")
_START_OF_WORKERS: Final = (
    'using the "epoll" event method',
    "start worker processes",
    "start worker process 29",
)
_RELOADING: Final = "signal 1 (SIGHUP) received, reconfiguring"
_SIGNALS: Final = ("stop", "quit", "reopen", "reload")
_TEMPLATES: Final = "/etc/nginx/templates"
_SITES: Final = "/etc/nginx/conf.d"
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_MAX_HOSTS: Final = 1000
_WITH_VALUE: Final = frozenset("psgce")
_VERSION: Final = re.compile(r"(\d+\.\d+)(\.\d+)?(?:-.*)?")
_LATEST: Final = "1.29.4"
_PATCHES: Final = {
    "1.19": 10,
    "1.20": 2,
    "1.21": 6,
    "1.22": 1,
    "1.23": 4,
    "1.25": 5,
    "1.26": 3,
    "1.27": 5,
    "1.29": 4,
}
"""The last patches of series."""


class _Options:
    """The options of the command line."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.letters, self.values = "", dict[str, str]()
        self.problem = ""
        rest = list(arguments)
        while rest and not self.problem:
            word = rest.pop(0)
            if not word.startswith("-"):
                self.problem = f'invalid option: "{word}"'
            letters = word[1:]
            while letters and not self.problem:
                letter, letters = letters[0], letters[1:]
                if letter in _WITH_VALUE:
                    if not letters and not rest:
                        self.problem = _MISSING[letter]
                        break
                    self.values[letter] = letters or rest.pop(0)
                    letters = ""
                elif letter in "?hvVtTq":
                    self.letters += letter
                else:
                    self.problem = f'invalid option: "{letter}"'
        if not self.problem and self.values.get("s", "stop") not in _SIGNALS:
            self.problem = f'invalid option: "-s {self.values["s"]}"'


_MISSING: Final = {
    "p": 'option "-p" requires directory name',
    "e": 'option "-e" requires file name',
    "c": 'option "-c" requires file name',
    "g": 'option "-g" requires parameter',
    "s": 'option "-s" requires parameter',
}


def nginx(process: Process) -> Run:
    """Run nginx. Where nothing has its answers, as before a container runs, it is not simulated."""
    server = server_of(process)
    options = _Options(process.arguments)
    if options.problem:
        yield process.error(options.problem)
        return 1
    if {"v", "V", "?", "h"} & {*options.letters}:
        yield process.report(f"nginx version: nginx/{_version_of(process.host.image)}")
        return 0
    path = options.values.get("c", _CONFIGURATION)
    if not process.host.files.knows(full_path(path)) and not process.host.files.knows(f"{PREFIX}/mime.types"):
        raise UnknownProgram(process.name)  # Nobody knows the files of the image.
    if server.runs_entrypoint:
        server.runs_entrypoint = False
        yield from _run_entrypoint(process)
    server.is_starting = True
    try:
        return (yield from _Nginx(process, server, path, options).run())
    finally:
        server.is_starting = False


def reload(process: Process) -> Run:
    """Let the server of a container read its configuration again, as it does at SIGHUP."""
    server, options = process.host.server, _Options(process.arguments)
    if server is None or not server.is_running:
        return 0
    return (yield from _Nginx(process, server, options.values.get("c", _CONFIGURATION), options).reload())


class _Nginx:
    def __init__(self, process: Process, server: RunningServer, path: str, options: _Options) -> None:
        self._process = process
        self._server = server
        self._path = path
        self._options = options
        self._read: dict[str, str] = {}
        """The files of the configuration by their paths."""
        self._error_log = ERROR_LOG
        self._level = "notice"

    def run(self) -> Run:
        if problem := self._problem_of_log(ERROR_LOG):
            yield from self._print(
                "alert", f'could not open error log file: open() "{ERROR_LOG}" failed ({problem})'
            )
        is_test = "t" in self._options.letters or "T" in self._options.letters
        try:
            configuration = self._load()
            self._error_log, self._level = configuration.error_log, configuration.level
            if "s" in self._options.values:
                return (yield from self._signal(configuration))
            self._read_certificates(configuration)
            addresses = yield from self._look_up(configuration)
            for warning in configuration.warnings:
                yield from self._report("warn", warning)
            self._open_logs(configuration)
            self._own_temporary_folders(configuration)
        except ConfigurationError as error:
            yield from self._report("emerg", str(error))
            if is_test:
                yield self._process.report(f"nginx: configuration file {full_path(self._path)} test failed")
            return 1
        if is_test:
            return (yield from self._report_test())
        if self._server.is_running:
            for port in configuration.ports:
                yield from self._report(
                    "emerg", f"bind() to 0.0.0.0:{port} failed (98: Address already in use)"
                )
            return 1
        return (yield from self._serve(configuration, addresses))

    def _load(self) -> Configuration:
        directives = parse(full_path(self._path), self._read_files)
        globals_text = self._options.values.get("g", "")
        added: tuple[Directive, ...] = ()
        if globals_text:
            added = parse("command line", lambda _: [("command line", globals_text)])
        return configuration_of((*added, *directives))

    def _read_files(self, path: str) -> Sequence[tuple[str, str]]:
        files, path = self._process.host.files, full_path(path)
        paths: Sequence[str] = [path]
        if any(char in path for char in "*?["):
            paths = matching_paths(files, path)
        found = []
        for each in paths:
            text = read_file(files, each)
            self._read[each] = text
            found.append((each, text))
        return found

    def _look_up(
        self, configuration: Configuration
    ) -> Generator[Effect, bytes | None, Mapping[str, tuple[str, ...]]]:
        """Return the addresses of the names in upstreams; raise `ConfigurationError` for one that does not exist."""
        addresses: dict[str, tuple[str, ...]] = {}
        for each in configuration.hosts[:_MAX_HOSTS]:
            if each.host in addresses:
                continue
            try:
                resolution = yield from network.resolve(self._process, each.host)
            except UnknownProgram as error:
                self._server.on_not_simulated(str(error))
                addresses[each.host] = ()
                continue
            if not resolution.addresses:
                raise each.error()
            addresses[each.host] = resolution.addresses
        return addresses

    def _read_certificates(self, configuration: Configuration) -> None:
        """Raise an error for the file of a certificate that cannot be read."""
        for each in configuration.certificates:
            path = each.arguments[0]
            if path.startswith(("data:", "engine:")):
                continue
            path = full_path(path)
            kind = "certificate key" if each.name.endswith("key") else "certificate"
            files = self._process.host.files
            try:
                reason = "" if files.exists(path) else "No such file or directory"
                files.read(path)
            except FileError as error:
                reason = str(error)
            if reason:
                number = 0x80000000 + NUMBERS.get(reason, errno.EIO)
                raise ConfigurationError(
                    f'cannot load {kind} "{path}": BIO_new_file() failed (SSL: error:{number:08X}:system library::{reason}:calling '
                    f"fopen({path}, r) error:10000080:BIO routines::no such file)"
                )

    def _open_logs(self, configuration: Configuration) -> None:
        """Create the logs that are files; raise `ConfigurationError` if one cannot be written."""
        for path in dict.fromkeys(map(full_path, configuration.log_paths())):
            if path.rpartition("/")[2] in ("off", "stderr") or "$" in path or ":" in path:
                continue
            if problem := self._problem_of_log(path):
                raise ConfigurationError(f'open() "{path}" failed ({problem})')

    def _own_temporary_folders(self, configuration: Configuration) -> None:
        """Raise an error where nginx may not give its temporary folders to its workers."""
        user = self._process.host.files.rights.user
        if configuration.user != "root" and not user.user and not user.has("CHOWN"):
            raise ConfigurationError(
                'chown("/var/cache/nginx/client_temp", 101) failed (1: Operation not permitted)'
            )

    def _problem_of_log(self, path: str) -> str:
        """Open a log, and create it if it is missing; return why that is not possible, "" if it is."""
        reason = open_log(self._process, path)
        return f"{NUMBERS.get(reason, errno.EIO)}: {reason}" if reason else ""

    def _signal(self, configuration: Configuration) -> Run:
        """Send a signal to the server: it reads its configuration again, or ends."""
        name = self._options.values["s"]
        if not self._server.is_running:
            problem = "2: No such file or directory"
            yield from self._report(
                "error", f'open() "{configuration.pid}" failed ({problem})', is_plain=True
            )
            return 1
        if name in ("stop", "quit"):
            raise UnknownProgram(f"{self._process.name} -s {name}")
        yield from self._report("notice", "signal process started")
        if name == "reload":
            addresses = yield from self._look_up(configuration)
            self._open_logs(configuration)
            self._log_of_server(_RELOADING)
            self._accept_again(configuration, addresses)
        return 0

    def reload(self) -> Run:
        """Read the configuration again; one with a mistake is logged and not used."""
        self._log_of_server(_RELOADING)
        try:
            configuration = self._load()
            self._read_certificates(configuration)
            addresses = yield from self._look_up(configuration)
            self._open_logs(configuration)
        except ConfigurationError as error:
            self._log_of_server(str(error), "emerg")
            return 1
        self._accept_again(configuration, addresses)
        return 0

    def _accept_again(self, configuration: Configuration, addresses: Mapping[str, tuple[str, ...]]) -> None:
        self._accept(configuration, addresses)
        for text in ("reconfiguring", *_START_OF_WORKERS):
            self._log_of_server(text)

    def _log_of_server(self, text: str, level: str = "notice") -> None:
        """Write a line of the server itself to its log, and not one of the present program."""
        self._server.write_log(2, self._line(level, text, 1))

    def _report_test(self) -> Run:
        path = full_path(self._path)
        if "q" not in self._options.letters or "T" in self._options.letters:
            yield self._process.report(f"nginx: the configuration file {path} syntax is ok")
            yield self._process.report(f"nginx: configuration file {path} test is successful")
        for name, text in self._read.items() if "T" in self._options.letters else ():
            yield write_text(f"# configuration file {name}:\n{text}\n")
        return 0

    def _serve(self, configuration: Configuration, addresses: Mapping[str, tuple[str, ...]]) -> Run:
        self._accept(configuration, addresses)
        event, *workers = _START_OF_WORKERS
        for text in (event, f"nginx/{_version_of(self._process.host.image)}", *workers):
            yield from self._report("notice", text)
        if configuration.is_daemon:
            return 0
        yield Sleep(inf)
        return 0

    def _accept(self, configuration: Configuration, addresses: Mapping[str, tuple[str, ...]]) -> None:
        self._server.accept(
            ServedConfiguration(
                answer=partial(answer, configuration),
                ports=configuration.ports,
                unknown_ports=dict.fromkeys(configuration.stream_ports, "the directive stream of nginx"),
                addresses=addresses,
                certificate=configuration.certificate(),
                worker=worker_of(self._process, configuration.user or "nginx"),
                not_simulated=tuple(f"the directive {name} of nginx" for name in configuration.not_simulated),
            )
        )

    # --- messages

    def _report(self, level: str, text: str, *, is_plain: bool = False) -> Steps:
        """Write a line to the error log, and to the standard error what nginx also says there."""
        if not is_plain and _LEVELS.index(level) <= _LEVELS.index(self._level):
            yield from write_to_log(self._process, full_path(self._error_log), self._line(level, text))
        if level != "notice":
            yield from self._print(level, text)

    def _print(self, level: str, text: str) -> Steps:
        yield self._process.report(f"nginx: [{level}] {text}")

    def _line(self, level: str, text: str, pid: int = 0) -> str:
        pid = pid or self._process.pid or 1
        now = self._process.host.now_running(is_shown=True)
        return f"{now:%Y/%m/%d %H:%M:%S} [{level}] {pid}#{pid}: {text}"


def _version_of(image: str) -> str:
    """Return the version of nginx in an image, such as 1.27.5 for nginx:1.27-alpine, or that of the latest one."""
    match = _VERSION.fullmatch(image.rpartition("/")[2].partition(":")[2])
    if match is None:
        return _LATEST
    return match[1] + (match[2] or f".{_PATCHES.get(match[1], 0)}")


# --- the entrypoint of the official image


def _run_entrypoint(process: Process) -> Steps:
    """Do what the scripts in /docker-entrypoint.d do: enable IPv6, and substitute variables in templates."""
    script = "/docker-entrypoint.sh"
    yield process_line(f"{script}: /docker-entrypoint.d/ is not empty, will attempt to perform configuration")
    yield process_line(f"{script}: Looking for shell scripts in /docker-entrypoint.d/")
    yield process_line(f"{script}: Launching /docker-entrypoint.d/10-listen-on-ipv6-by-default.sh")
    yield from (process_line(f"10-listen-on-ipv6-by-default.sh: info: {text}") for text in _ipv6(process))
    yield process_line(f"{script}: Sourcing /docker-entrypoint.d/15-local-resolvers.envsh")
    yield process_line(f"{script}: Launching /docker-entrypoint.d/20-envsubst-on-templates.sh")
    yield from map(process_line, _substitute(process))
    yield process_line(f"{script}: Launching /docker-entrypoint.d/30-tune-worker-processes.sh")
    yield process_line(f"{script}: Configuration complete; ready for start up")


def process_line(text: str) -> Output:
    return write_text(f"{text}\n")


def _ipv6(process: Process) -> Iterator[str]:
    files, path = process.host.files, f"{_SITES}/default.conf"
    if not files.knows(path):
        yield f"{path} is not a file or does not exist"
        return
    try:
        is_protected = files.place(files.resolve(path)).read_only or files.entry(path).read_only
        files.rights.require(files.entry(path), WRITE)
    except FileError:
        is_protected = True
    if is_protected:
        yield f"can not modify {path} (read-only file system?)"
        return
    yield f"Getting the checksum of {path}"
    yield f"Enabled listen on IPv6 in {path}"


def _substitute(process: Process) -> Iterator[str]:
    """Write the files of templates with the values of variables."""
    files, environment = process.host.files, process.environment
    templates = environment.get("NGINX_ENVSUBST_TEMPLATE_DIR", _TEMPLATES)
    suffix = environment.get("NGINX_ENVSUBST_TEMPLATE_SUFFIX", ".template")
    output = environment.get("NGINX_ENVSUBST_OUTPUT_DIR", _SITES)
    if not files.knows(templates):
        return
    filter_text = environment.get("NGINX_ENVSUBST_FILTER", "")
    name = "20-envsubst-on-templates.sh"
    for path in [path for path in files.walk(templates) if path.endswith(suffix)]:
        target = join(output, path.removeprefix(f"{templates}/").removesuffix(suffix))
        if "/.." in path:
            continue
        try:
            text = files.read(path).decode("utf-8", "surrogateescape")
            yield f"{name}: Running envsubst on {path} to {target}"

            def value(match: re.Match[str]) -> str:
                variable = match[1] or match[2]
                is_chosen = variable in environment and filter_text in variable
                return environment[variable] if is_chosen else match[0]

            files.make_directory(dirname(target), parents=True)
            data = _VARIABLE.sub(value, text).encode("utf-8", "surrogateescape")
            files.write(target, data, modified=process.host.now().timestamp())
        except FileError:
            yield f"{name}: ERROR: {templates} exists, but {output} is not writable"
            return
