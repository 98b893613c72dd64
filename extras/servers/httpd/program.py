"""httpd of Apache: reads its configuration, opens its logs, and serves until it is stopped; apachectl and httpd-foreground start it.

What it answers is in `answering`.
"""

import errno
from collections.abc import Iterator, Sequence
from functools import partial
from math import inf
from posixpath import basename, dirname
from typing import Final

from mockube.container_runtime.simulated.programs.configuration_lines import matching_paths
from mockube.container_runtime.simulated.server_contract import RunningServer, ServedConfiguration
from mockube.container_runtime.simulated.shell.process import (
    Process,
    Run,
    Sleep,
    Steps,
    UnknownProgram,
    write_text,
)
from mockube.container_runtime.simulated.shell.programs.installed_servers import server_of
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.path_walk import tree_entries
from mockube.extras.servers.configuration_files import NUMBERS, open_log, read_file, worker_of, write_to_log

from .answering import answer
from .configuration import (
    ROOT,
    HttpdConfiguration,
    HttpdHost,
    configuration_of,
)
from .parser import HttpdConfigurationError, Reader

_LATEST: Final = "2.4.66"
_WITH_VALUE: Final = "DdfCcekE"
_COMMANDS: Final = ("start", "restart", "graceful", "graceful-stop", "stop")
_CONFIGURATION: Final = "conf/httpd.conf"
_USAGE: Final = """Usage: httpd [-D name] [-d directory] [-f file]
             [-C "directive"] [-c "directive"]
             [-k start|restart|graceful|graceful-stop|stop]
             [-v] [-V] [-h] [-l] [-L] [-t] [-T] [-S] [-X]
"""


class _Options:
    def __init__(self, arguments: Sequence[str]) -> None:
        self.letters, self.values, self.defines = "", dict[str, str](), list[str]()
        self.problem = ""
        rest = list(arguments)
        while rest and not self.problem:
            word = rest.pop(0)
            letter, value = word[1:2], word[2:]
            if not word.startswith("-") or not letter:
                self.problem = "usage"
            elif letter in _WITH_VALUE:
                if not value and not rest:
                    self.problem = f"httpd: option requires an argument -- {letter}"
                    break
                value = value or rest.pop(0)
                if letter == "D":
                    self.defines.append(value)
                else:
                    self.values[letter] = value
            elif letter in "hvVlLtTSMX":
                self.letters += letter
                rest = [f"-{value}", *rest] if value else rest
            else:
                self.problem = f"httpd: illegal option -- {letter}"


def httpd(process: Process, arguments: Sequence[str] | None = None) -> Run:
    """Run httpd. Where nothing has its answers, as before a container runs, it is not simulated."""
    server = server_of(process)
    files = process.host.files
    options = _Options(process.arguments if arguments is None else arguments)
    if options.problem:
        yield process.report(
            "\n".join(line for line in (options.problem, _USAGE.rstrip()) if line != "usage")
        )
        return 1
    version = _version_of(process.host.image)
    if "h" in options.letters:
        yield write_text(_USAGE)
        return 0
    if {"v", "V"} & {*options.letters}:
        yield write_text(f"Server version: Apache/{version} (Unix)\nServer built:   Dec 30 2025 00:16:02\n")
        return 0
    if "l" in options.letters:
        yield write_text("Compiled in modules:\n  core.c\n  mod_so.c\n  http_core.c\n")
        return 0
    if not files.knows(f"{ROOT}/{_CONFIGURATION}") and "f" not in options.values:
        raise UnknownProgram(process.name)  # Nobody knows the files of the image.
    server.is_starting = True
    try:
        return (yield from _Httpd(process, server, options, version).run())
    finally:
        server.is_starting = False


def httpd_foreground(process: Process) -> Run:
    """Run the script of the official image, which removes the file of an earlier run and starts httpd."""
    return (yield from httpd(process, ("-DFOREGROUND", *process.arguments)))


def apachectl(process: Process) -> Run:
    first = next(iter(process.arguments), "")
    if first == "configtest":
        return (yield from httpd(process, ("-t",)))
    if first in _COMMANDS or not first:
        return (yield from httpd(process, ("-k", first or "start")))
    return (yield from httpd(process))


class _Httpd:
    def __init__(self, process: Process, server: RunningServer, options: _Options, version: str) -> None:
        self._process = process
        self._server = server
        self._options = options
        self._version = version
        self._error_log = f"{ROOT}/logs/error_log"

    def run(self) -> Run:
        letters = self._options.letters
        is_test = bool({"t", "S", "M"} & {*letters})
        command = self._options.values.get("k", "")
        if command in ("stop", "graceful-stop") and self._server.is_running:
            raise UnknownProgram(f"{self._process.name} -k {command}")
        try:
            configuration = self._load()
        except HttpdConfigurationError as error:
            yield self._process.report(str(error))
            return 1
        yield from self._warn(configuration)
        if problem := self._problem_of_logs(configuration):
            yield self._process.report(
                f"{problem}\nAH00014: HttpdConfiguration check failed"
                if is_test
                else f"{problem}\nAH00015: Unable to open logs"
            )
            return 1
        if is_test:
            return (yield from self._report_test(configuration))
        if self._server.is_running:
            return (yield from self._control(configuration, command))
        if command and command not in _COMMANDS:
            yield self._process.report(_USAGE.rstrip())
            return 1
        return (yield from self._serve(configuration))

    def _load(self) -> HttpdConfiguration:
        root = self._options.values.get("d", ROOT)
        path = self._options.values.get("f", _CONFIGURATION)
        path = path if path.startswith("/") else f"{root}/{path}"
        reader = Reader(
            self._read_files, self._exists, self._process.environment, root, self._options.defines
        )
        return configuration_of(reader.read(path), self._kind)

    def _exists(self, path: str) -> bool:
        return self._kind(path) != ""

    def _kind(self, path: str) -> str:
        files = self._process.host.files
        try:
            if not files.exists(path):
                return ""
            return "folder" if files.entry(path).is_directory else "file"
        except FileError:
            return ""

    def _read_files(self, path: str) -> Sequence[tuple[str, str]]:
        files = self._process.host.files
        paths: Sequence[str] = [path]
        if any(char in path for char in "*?["):
            paths = matching_paths(files, path)
            if not paths and not self._exists(dirname(path)):
                raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        elif self._kind(path) == "folder":
            paths = sorted(f"{path.rstrip('/')}/{name}" for name in files.children(path))
        elif not self._exists(path):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return [(each, read_file(files, each)) for each in paths if self._kind(each) != "folder"]

    def _warn(self, configuration: HttpdConfiguration) -> Steps:
        for warning in configuration.warnings:
            has_time = warning.startswith(("AH00111", "AH01574"))
            level = "so:warn" if warning.startswith("AH01574") else "core:warn"
            yield self._process.report(self._line(level, warning) if has_time else warning)
        if not configuration.main.name:
            address = self._process.host.address or "127.0.0.1"
            yield self._process.report(
                f"AH00558: httpd: Could not reliably determine the server's fully qualified domain name, using {address}. "
                "Set the 'ServerName' directive globally to suppress this message"
            )

    def _problem_of_logs(self, configuration: HttpdConfiguration) -> str:
        """Open the logs; return what httpd says of one that cannot be opened."""
        for host in (configuration.main, *configuration.hosts):
            for name, kind in _logs_of(host, is_main=host is configuration.main):
                path = configuration.full_path(name)
                if path.startswith("|") or path.endswith("syslog") or "|" in path:
                    continue
                folder = dirname(path)
                if self._kind(folder) != "folder" and not folder.startswith(("/proc", "/dev")):
                    if kind == "error":
                        return f"(2)No such file or directory: AH02291: Cannot access directory '{folder}/' for main error log"
                    return f"(2)No such file or directory: AH02297: Cannot access directory '{folder}/' for log file '{path}' defined at {host.file}:{host.line}"
                if reason := open_log(self._process, path):
                    code = (
                        "AH00091: httpd: could not open error log file"
                        if kind == "error"
                        else "AH00649: could not open transfer log file"
                    )
                    return f"({NUMBERS.get(reason, errno.EIO)}){reason}: {code} {path}."
                if kind == "error" and host is configuration.main:
                    self._error_log = path
        return ""

    def _report_test(self, configuration: HttpdConfiguration) -> Run:
        if "S" in self._options.letters:
            yield write_text(_virtual_hosts(configuration))
        elif "M" in self._options.letters:
            static = "".join(f" {name}_module (static)\n" for name in ("core", "so", "http"))
            shared = "".join(f" {name}_module (shared)\n" for name in configuration.modules)
            yield write_text(f"Loaded Modules:\n{static}{shared}")
        else:
            yield self._process.report("Syntax OK")
        return 0

    def _control(self, configuration: HttpdConfiguration, command: str) -> Run:
        """Answer a command of a client, while the server of the container runs."""
        if command in ("restart", "graceful"):
            self._accept(configuration)
            signal = (
                "AH00493: SIGUSR1 received.  Doing graceful restart"
                if command == "graceful"
                else "AH00494: SIGHUP received.  Attempting to restart"
            )
            self._server.write_log(2, self._line("mpm_event:notice", signal))
            return 0
        if command == "start" or "FOREGROUND" not in self._options.defines:
            yield write_text("httpd (pid 1) already running\n")
            return 0
        for port in configuration.ports:
            for address in ("[::]", "0.0.0.0"):  # noqa: S104 - of a simulated server
                yield self._process.report(
                    f"(98)Address already in use: AH00072: make_sock: could not bind to address {address}:{port}"
                )
        yield self._process.report(
            "no listening sockets available, shutting down\nAH00015: Unable to open logs"
        )
        return 1

    def _serve(self, configuration: HttpdConfiguration) -> Run:
        yield from self._warn(configuration)  # It reads its configuration twice.
        pid_file = configuration.full_path((configuration.main.own.last("pidfile") or ("logs/httpd.pid",))[0])
        if reason := open_log(self._process, pid_file):
            number = NUMBERS.get(reason, errno.EIO)
            yield from self._log(
                "core:error", f"({number}){reason}: AH00099: could not create {pid_file}.ZxaQ1B"
            )
            yield from self._log("core:error", f"AH00100: httpd: could not log pid to file {pid_file}")
            return 1
        user = self._process.host.files.rights.user
        if not user.user and not (user.has("SETGID") and user.has("SETUID")):
            group = "(1)Operation not permitted: AH02156: setgid: unable to set group id to Group 33"
            yield from self._log("unixd:alert", group)
            yield from self._log(
                "core:alert", "AH00050: Child 8 returned a Fatal error... Apache is exiting!"
            )
            return 1
        self._accept(configuration)
        module = next((name for name in configuration.modules if name.startswith("mpm_")), "mpm_event")
        code = {"mpm_event": "AH00489", "mpm_worker": "AH00292", "mpm_prefork": "AH00163"}.get(
            module, "AH00489"
        )
        defines = "".join(f" -D {name}" for name in self._options.defines)
        yield from self._log(
            f"{module}:notice",
            f"{code}: Apache/{self._version} (Unix) configured -- resuming normal operations",
        )
        yield from self._log("core:notice", f"AH00094: Command line: 'httpd{defines}'")
        if "FOREGROUND" in self._options.defines or "X" in self._options.letters:
            yield Sleep(inf)
        return 0

    def _accept(self, configuration: HttpdConfiguration) -> None:
        self._server.accept(
            ServedConfiguration(
                answer=partial(answer, configuration, self._version),
                ports=dict.fromkeys(configuration.ports, False),
                not_simulated=(*configuration.not_simulated, *self._override_files(configuration)),
                worker=worker_of(self._process, (configuration.main.own.last("user") or ("",))[0]),
            )
        )

    def _override_files(self, configuration: HttpdConfiguration) -> Iterator[str]:
        """Yield what is not simulated of files that change the configuration of their folders, where they may."""
        files = self._process.host.files
        for host in (configuration.main, *configuration.hosts):
            for section in host.sections:
                overrides = [each.lower() for each in section.last("allowoverride") or ("none",)]
                if section.kind == "directory" and section.path and overrides != ["none"]:
                    paths = (path for path, _ in tree_entries(files, section.path.rstrip("/") or "/"))
                    yield from (f"{path} of httpd" for path in paths if basename(path) == ".htaccess")

    def _log(self, module: str, text: str) -> Steps:
        yield from write_to_log(self._process, self._error_log, self._line(module, text))

    def _line(self, module: str, text: str) -> str:
        now = self._process.host.now_running(is_shown=True)
        pid = self._process.pid or 1
        return f"[{now:%a %b %d %H:%M:%S.%f %Y}] [{module}] [pid {pid}:tid {pid}] {text}"


def _logs_of(host: HttpdHost, *, is_main: bool) -> list[tuple[str, str]]:
    own = [(arguments[0], "error") for arguments in host.own.all("errorlog")]
    own = own or ([("logs/error_log", "error")] if is_main else [])
    return [*own, *((arguments[0], "access") for arguments in host.own.all("customlog"))]


def _virtual_hosts(configuration: HttpdConfiguration) -> str:
    """Return what httpd -S prints."""
    lines = ["VirtualHost configuration:"]
    by_address: dict[str, list[HttpdHost]] = {}
    for host in configuration.hosts:
        for address in host.addresses:
            by_address.setdefault(address, []).append(host)
    for address, hosts in by_address.items():
        port = address.rpartition(":")[2]
        first = hosts[0]
        if len(hosts) == 1:
            lines.append(f"{address:<22} {first.name or 'localhost'} ({first.file}:{first.line})")
            continue
        lines.append(f"{address:<22} is a NameVirtualHost")
        lines.append(f"         default server {first.name or 'localhost'} ({first.file}:{first.line})")
        for host in hosts:
            lines.append(
                f"         port {port} namevhost {host.name or 'localhost'} ({host.file}:{host.line})"
            )
            lines += [
                f"                 {'wild alias' if '*' in alias else 'alias'} {alias}"
                for alias in host.aliases
            ]
    own = configuration.main.own
    root = configuration.full_path((own.last("documentroot") or ("htdocs",))[0])
    log = configuration.full_path((own.last("errorlog") or ("logs/error_log",))[0])
    lines += [
        f'ServerRoot: "{configuration.root}"',
        f'Main DocumentRoot: "{root}"',
        f'Main ErrorLog: "{log}"',
    ]
    return "".join(f"{line}\n" for line in lines)


def _version_of(image: str) -> str:
    """Return the version of httpd in an image, such as 2.4.57 for httpd:2.4.57-alpine, or that of the latest one."""
    tag = image.rpartition("/")[2].partition(":")[2].partition("-")[0]
    return tag if tag.count(".") == 2 and tag.replace(".", "").isdecimal() else _LATEST
