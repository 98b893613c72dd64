"""agnhost, the program of the image that Kubernetes' own tests and many examples use.

Commands that only print, wait or work on files are executed. Servers run forever; some of them answer on their ports.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final

from mockube.apimachinery import gotext
from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.gotext import int_or_none
from mockube.container_runtime.simulated.shell.network_programs.agnhost_clients import (
    connect,
    log_line,
    register_at_primary,
)
from mockube.container_runtime.simulated.shell.process import (
    Output,
    Process,
    Program,
    Run,
    Sleep,
    UnknownProgram,
    listening,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry, FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

FOREVER: Final = float("inf")
_NEW_FILE: Final = b"mount-tester new file\n"
_LOOP_SECONDS: Final = 2
_FILE_SYSTEM: Final = "2035054128"
"""The type number of overlayfs, for which agnhost has no name."""
_STICKY: Final = 0o1000
_SET_GID: Final = 0o2000
_BITS: Final = "rwxrwxrwx"
_ANSWERED: Final = frozenset(
    [
        "grpc-health-checking",
        "guestbook",
        "liveness",
        "netexec",
        "nettest",
        "no-snat-test",
        "porter",
        "serve-hostname",
        "test-webserver",
    ]
)
"""The servers whose ports answer, see `servers.server_programs`."""
Options = Mapping[str, str]


def agnhost(process: Process) -> Run:
    name = next((argument for argument in process.arguments if not argument.startswith("-")), "")
    command = _COMMANDS.get(name)
    if command is None and name and name not in _NOT_SIMULATED:
        yield process.report(f'Error: unknown command {gotext.quote(name)} for "app"')
        return 1
    if command is None:
        raise UnknownProgram(f"agnhost {name}".rstrip())
    return (yield from command(process))


def _options(process: Process, short: Mapping[str, str]) -> dict[str, str]:
    """Parse `--name=value`, `--name value` and their short forms; an option without a value is "true"."""
    options: dict[str, str] = {}
    name = ""
    for argument in process.arguments[1:]:
        if argument.startswith("-") and not (name and argument[1:].isdecimal()):
            option, separator, value = argument.lstrip("-").partition("=")
            name = short.get(option, option)
            options[name] = value if separator else "true"
            name = "" if separator else name
        elif name:
            options[name], name = argument, ""
    return options


def _print_arguments(process: Process) -> Run:
    yield write_text(f"[{' '.join((f'/{process.name}', *process.arguments))}]\n")
    return 0


def _print_user(process: Process) -> Run:
    yield write_text(f"Effective uid: {process.host.user}\n")
    return 0


def _pause(_: Process) -> Run:
    yield write_text("Paused\nSignals registered\n")
    yield Sleep(FOREVER)
    return 0


def _serve(process: Process) -> Run:
    """Run a server: what it answers is not done here, but by `servers.server_programs` and `connections.agnhost_responses`."""
    name, options = process.arguments[0], _options(process, {})
    if name not in _ANSWERED:
        text = f"mockube: agnhost {name} is simulated: it runs until it is stopped and serves nothing\n"
        yield write_text(text)
    now = process.host.now_running(is_shown=True)
    for line in _start_lines(name, options):
        yield Output(2, f"{log_line(now, line)}\n".encode())
    if (
        name == "guestbook"
        and "replicaof" in options
        and not (yield from register_at_primary(process, options))
    ):
        return 1
    yield Sleep(FOREVER)
    return 0


def _start_lines(name: str, options: Options) -> Iterator[str]:
    """Yield what a server logs when it starts."""
    if name == "netexec":
        yield f"Started HTTP server on port {options.get('http-port', '8080')}"
        udp = options.get("udp-port", "8081")
        if udp != "-1":
            yield f"Started UDP server on port  {udp}"
    elif name == "serve-hostname":
        yield f"Serving on port {options.get('port', '9376')}."


def _connect(process: Process) -> Run:
    options = _options(process, {})
    values = set(options.values())
    destinations = [word for word in process.arguments[1:] if not word.startswith("-") and word not in values]
    if len(destinations) != 1:
        yield Output(2, f"Error: accepts 1 arg(s), received {len(destinations)}\n".encode())
        return 1
    return (yield from connect(process, destinations[0], options))


def _print_hosts(process: Process) -> Run:
    yield write_text(f"{_read(process.host.files, '/etc/hosts').decode()}\n")
    return 0


def _print_resolver(keyword: str) -> Program:
    def run(process: Process) -> Run:
        lines = _read(process.host.files, "/etc/resolv.conf").decode().splitlines()
        words = [line.split()[1:] for line in lines if line.startswith(f"{keyword} ")]
        yield write_text(",".join(word for line in words for word in line) + "\n")
        return 0

    return run


def _read(files: FileSystem, path: str) -> bytes:
    try:
        return files.read(path)
    except FileError:
        return b""


def _generate_logs(process: Process) -> Run:
    options = _options(process, {"t": "log-lines-total", "d": "run-duration"})
    total = int_or_none(options.get("log-lines-total", "0")) or 0
    try:
        seconds = parse_duration(options.get("run-duration", "0")) / 10**9
    except DurationError:
        seconds = 0
    if total <= 0 or seconds <= 0:
        yield process.error("Invalid total number of lines or duration")
        return 255
    for number in range(total):
        yield write_text(_log_line(process.host.now_running(is_shown=True), process.host.name, number))
        yield Sleep(seconds / total)
    return 0


def _log_line(now: datetime, seed: str, number: int) -> str:
    """Return a klog line about an invented request, which depends on the container's name and the line's number."""
    digest = sha256(f"{seed}/{number}".encode()).digest()
    method, namespace = ("GET", "POST", "PUT")[digest[0] % 3], ("kube-system", "default", "ns")[digest[1] % 3]
    url = f"/api/v1/namespaces/{namespace}/pods/{digest.hex()[4 : 7 + digest[2] % 2]}"
    head = f"I{now:%m%d %H:%M:%S.%f} {1:>7} logs_generator.go:76]"
    return f"{head} {number} {method} {url} {200 + int.from_bytes(digest[3:5], 'big') % 400}\n"


def _test_mounts(process: Process) -> Run:
    """Execute the options in agnhost's own order: a file is written before it is read."""
    options = _options(process, {})
    failed = 0
    for name, show in _MOUNT_TESTS.items():
        if path := options.get(name):
            try:
                yield write_text(show(process, path))
            except FileError as error:
                yield write_text(
                    f"{_PROBLEMS.get(name, 'error')} {gotext.quote(path)}: {_error_text(error)}\n"
                )
                failed = 1
    if path := options.get("file_content_in_loop"):
        failed = (yield from _show_in_loop(process, path, options)) or failed
    return failed


def _show_in_loop(process: Process, path: str, options: Options) -> Run:
    seconds = int_or_none(options.get("retry_time", "180")) or 0
    stops_on_content = gotext.BOOLEANS.get(options.get("break_on_expected_content", "true"), False)
    elapsed = 0
    problem = 0
    while elapsed < seconds:
        try:
            data = process.host.files.read(process.path(path))
            problem = 0
            yield write_text(_content_line(path, data))
            if stops_on_content and data == _NEW_FILE:
                return 0
            if stops_on_content:
                yield write_text(f"Unexpected content. Expected: {_NEW_FILE.decode()}. Retrying\n")
        except FileError as error:
            problem = 1
            yield write_text(f"Error reading file {path}: {_error_text(error, path)}, retrying\n")
        yield Sleep(_LOOP_SECONDS)
        elapsed += _LOOP_SECONDS
    return problem


def _error_text(error: FileError, path: str = "") -> str:
    text = str(error)
    words = text[:1].lower() + text[1:]
    return f"open {path}: {words}" if path else words


def _content_line(path: str, data: bytes) -> str:
    return f"content of file {gotext.quote(path)}: {data.decode('utf-8', 'surrogateescape')}\n"


def _show_content(process: Process, path: str) -> str:
    return _content_line(path, process.host.files.read(process.path(path)))


def _write_new(mode: int) -> Callable[[Process, str], str]:
    def run(process: Process, path: str) -> str:
        absolute_path, files = process.path(path), process.host.files
        is_new = not files.exists(absolute_path)
        files.write(absolute_path, _NEW_FILE, modified=process.host.now_running(is_shown=True).timestamp())
        if is_new:
            files.change(absolute_path, mode=mode)
        return _show_content(process, path)

    return run


def _show_file_system(process: Process, path: str) -> str:
    absolute_path, files = process.path(path), process.host.files
    files.entry(absolute_path)
    kind = files.mounts.file_system_type(absolute_path) or _FILE_SYSTEM
    return f"mount type of {gotext.quote(path)}: {kind}\n"


def _show_mode(process: Process, path: str) -> str:
    return f"mode of file {gotext.quote(path)}: {_mode_text(_entry(process, path))}\n"


def _show_permissions(process: Process, path: str) -> str:
    return f"perms of file {gotext.quote(path)}: -{_permissions(_entry(process, path).mode)}\n"


def _show_owner(process: Process, path: str) -> str:
    entry, name = _entry(process, path), gotext.quote(path)
    return f"owner UID of {name}: {entry.user}\nowner GID of {name}: {entry.group}\n"


def _entry(process: Process, path: str) -> FileEntry:
    return process.host.files.entry(process.path(path))


def _mode_text(entry: FileEntry) -> str:
    """Return a mode as Go prints it."""
    kinds = (
        "d" if entry.is_directory else "",
        "g" if entry.mode & _SET_GID else "",
        "t" if entry.mode & _STICKY else "",
    )
    return ("".join(kinds) or "-") + _permissions(entry.mode)


def _permissions(mode: int) -> str:
    return "".join(letter if mode >> (8 - index) & 1 else "-" for index, letter in enumerate(_BITS))


_MOUNT_TESTS: Final[Mapping[str, Callable[[Process, str], str]]] = {
    "fs_type": _show_file_system,
    "new_file_0644": _write_new(0o644),
    "new_file_0666": _write_new(0o666),
    "new_file_0660": _write_new(0o660),
    "new_file_0777": _write_new(0o777),
    "file_mode": _show_mode,
    "file_perm": _show_permissions,
    "file_owner": _show_owner,
    "file_content": _show_content,
}
_PROBLEMS: Final[Mapping[str, str]] = {
    "fs_type": "error from statfs of",
    "file_mode": "error from Stat of",
    "file_perm": "error from Stat of",
    "file_owner": "error from stat of",
    "file_content": "error reading file content for",
}
_SERVERS: Final = (
    "audit-proxy crd-conversion-webhook external-metrics fake-gitserver fake-registry-server grpc-health-checking guestbook"
    " liveness mtlsserver net netexec nettest no-snat-test no-snat-test-proxy podcertificatesigner port-forward-tester porter"
    " resource-consumer-controller serve-hostname test-webserver webhook"
)
_NOT_SIMULATED: Final = frozenset(
    [
        "completion",
        "connect",
        "h2c-server",
        "help",
        "inclusterclient",
        "mtlsclient",
        "nonewprivs",
        "stress",
        "tcp-reset",
        "test-service-account-issuer-discovery",
    ]
)
"""The other commands that agnhost has, as of the image of 1.37."""
_COMMANDS: Final[Mapping[str, Program]] = {
    **dict.fromkeys(_SERVERS.split(), _serve),
    "connect": _connect,
    "dns-server-list": _print_resolver("nameserver"),
    "dns-suffix": _print_resolver("search"),
    "entrypoint-tester": _print_arguments,
    "etc-hosts": _print_hosts,
    "logs-generator": _generate_logs,
    "mounttest": _test_mounts,
    "nonewprivs": _print_user,
    "pause": _pause,
}
PROGRAMS: Final[Mapping[str, Program]] = dict.fromkeys(("agnhost", "agnhost-2"), listening(agnhost))
