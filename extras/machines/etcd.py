"""etcdctl and etcdutl on control-plane nodes: the health of etcd, and snapshots of the cluster's store."""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from posixpath import basename, dirname, join
from typing import Any, Final
from zlib import crc32

import orjson
from msgspec import structs

from mockube.container_runtime.etcd_snapshots import DATABASE, EtcdSnapshot, decode, encode
from mockube.container_runtime.simulated.node.services import ServiceError, ask
from mockube.container_runtime.simulated.shell.network_programs.kubectl.connection import NOT_SIMULATED
from mockube.container_runtime.simulated.shell.options import (
    ProgramOptions,
    UnknownOption,
    parse_command_line,
)
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    ProgramUsageError,
    Run,
    Sleep,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .tables import boxed_table, decimal_size

Work = Generator[Effect, bytes | None, Any]
Command = Callable[[Process, ProgramOptions, Sequence[str]], Work]
NEWEST_VERSION: Final = "3.7.0"
"""The version of the newest kubeadm's etcd, without its manifest."""
MANIFEST: Final = "/etc/kubernetes/manifests/etcd.yaml"
_IMAGE: Final = re.compile(rb"image: \S*\betcd:v?([0-9]+\.[0-9]+\.[0-9]+)")
_OPTIONS: Final = {
    "--endpoints": "endpoints=", "--cacert": "cacert=", "--cert": "cert=", "--key": "key=", "-w": "write-out=",
    "--write-out": "write-out=", "--data-dir": "data-dir=", "--wal-dir": "ignored=", "--name": "name=", "--cluster": "cluster",
    "--initial-cluster": "ignored=", "--initial-cluster-token": "ignored=", "--initial-advertise-peer-urls": "ignored=",
    "--skip-hash-check": "ignored", "--bump-revision": "ignored=", "--mark-compacted": "ignored", "--command-timeout": "ignored=",
    "--dial-timeout": "ignored=", "--debug": "ignored", "--insecure-skip-tls-verify": "insecure", "--insecure-transport": "ignored",
}  # fmt: skip
_DEFAULT_ENDPOINT: Final = "127.0.0.1:2379"
_PORT: Final = "2379"
_TIMEOUT: Final = 5.0
_QUOTA: Final = "2.1 GB"


class EtcdError(Exception):
    """The program ends with a message."""


def etcdctl(process: Process) -> Run:
    return (yield from _run(process, _CTL))


def etcdutl(process: Process) -> Run:
    return (yield from _run(process, _UTL))


def _run(process: Process, commands: Mapping[str, Command]) -> Run:
    try:
        options = parse_command_line(process.arguments, _OPTIONS, strips_equals=True)
    except UnknownOption as error:
        yield Output(2, f"Error: unknown flag: {error}\n".encode())
        return 1
    words = options.arguments
    command = commands.get(" ".join(words[:2])) or commands.get(" ".join(words[:1]))
    if command is None:
        raise ProgramUsageError(
            f"{basename(process.name)} {' '.join(words[:2])} is not simulated on a node: {', '.join(commands)} are; the objects are in the API server"
        )
    try:
        yield from command(process, options, words[2:])
    except (EtcdError, ServiceError) as error:
        yield Output(2, f"Error: {error}\n".encode())
        return 1
    return 0


# --- the servers


def _version_of(process: Process) -> str:
    """Return the version of etcd: that of the image in its manifest."""
    try:
        match = _IMAGE.search(process.host.files.read(MANIFEST))
    except FileError:
        return NEWEST_VERSION
    return NEWEST_VERSION if match is None else match[1].decode()


def _minor_of(version: str) -> str:
    return version.rpartition(".")[0]


def _setting(process: Process, options: ProgramOptions, name: str) -> str:
    return options.get(name) or process.environment.get(f"ETCDCTL_{name.upper()}", "")


def _endpoints(process: Process, options: ProgramOptions, status: Mapping[str, Any]) -> Sequence[str]:
    if "cluster" in options:
        return [f"https://{member['address']}:{_PORT}" for member in status["members"]]
    named = _setting(process, options, "endpoints") or _DEFAULT_ENDPOINT
    return [each.strip() for each in named.split(",") if each.strip()]


def _read_status(process: Process) -> Work:
    return (yield from ask(process, "etcd"))


def _problem_of(process: Process, options: ProgramOptions, endpoint: str, status: Mapping[str, Any]) -> str:
    """Return why an endpoint does not answer; "" if it does."""
    scheme, _, rest = endpoint.rpartition("://")
    host, _, port = rest.rpartition(":")
    member = _member_at(process, host, status)
    if port != _PORT or member is None or not member["runs"]:
        return f"dial tcp {rest}: connect: connection refused"
    if scheme == "http" or not (_setting(process, options, "cert") and _setting(process, options, "key")):
        return "error reading server preface: EOF"
    authority = _setting(process, options, "cacert")
    if "insecure" not in options and not (authority and _is_of_etcd(process, authority)):
        return "authentication handshake failed: tls: failed to verify certificate: x509: certificate signed by unknown authority"
    if not all(_is_of_etcd(process, _setting(process, options, name)) for name in ("cert", "key")):
        return "remote error: tls: bad certificate"
    return ""


def _is_of_etcd(process: Process, path: str) -> bool:
    """Return whether a file stands for a certificate or a key of etcd, which are not simulated; those of the API server are."""
    try:
        return process.host.files.read(process.path(path)).startswith(NOT_SIMULATED)
    except FileError:
        raise EtcdError(f"open {path}: no such file or directory") from None


def _report_failure(process: Process, endpoint: str, problem: str) -> Work:
    """Log, after the time that a request may take, why an endpoint does not answer."""
    yield Sleep(_TIMEOUT)
    warning = {
        "level": "warn", "logger": "client", "caller": f"v3@v{_version_of(process)}/retry_interceptor.go:65", "msg": "retrying of unary invoker failed",
        "target": f"etcd-endpoints://{endpoint}", "attempt": 0,
        "error": f'rpc error: code = DeadlineExceeded desc = latest balancer error: last connection error: connection error: desc = "transport: {problem}"',
    }  # fmt: skip
    yield Output(2, orjson.dumps(warning) + b"\n")


def _connect(process: Process, options: ProgramOptions) -> Work:
    """Return the status that the first endpoint gives; raise `EtcdError` if it does not answer."""
    status = yield from _read_status(process)
    endpoint = _endpoints(process, options, status)[0]
    problem = _problem_of(process, options, endpoint, status)
    if problem:
        yield from _report_failure(process, endpoint, problem)
        raise EtcdError("context deadline exceeded")
    return status


def _identifier(name: str) -> str:
    return f"{crc32(name.encode()):08x}{crc32(name[::-1].encode()):08x}"


def _print(
    options: ProgramOptions, header: Sequence[str], rows: Sequence[Sequence[str]], objects: Any
) -> Output:
    form = options.get("write-out", "simple")
    if form == "table":
        return write_text(boxed_table([header, *rows]))
    if form == "json":
        return write_text(orjson.dumps(objects).decode() + "\n")
    if form != "simple":
        raise EtcdError(f"unsupported output format {form!r}: simple, table and json are simulated")
    return write_text("".join(", ".join(row) + "\n" for row in rows))


def _health(process: Process, options: ProgramOptions, _: Sequence[str]) -> Work:
    status = yield from _read_status(process)
    rows, is_healthy = [], True
    for endpoint in _endpoints(process, options, status):
        problem = _problem_of(process, options, endpoint, status)
        if problem:
            yield from _report_failure(process, endpoint, problem)
            is_healthy = False
        rows.append(
            (
                endpoint,
                str(not problem).lower(),
                f"{_TIMEOUT:.6f}s" if problem else "9.512ms",
                "context deadline exceeded" if problem else "",
            )
        )
    if options.get("write-out", "simple") == "simple":
        for endpoint, health, took, _error in rows:
            text = (
                f"is healthy: successfully committed proposal: took = {took}"
                if health == "true"
                else "is unhealthy: failed to commit proposal: context deadline exceeded"
            )
            yield Output(1 if health == "true" else 2, f"{endpoint} {text}\n".encode())
    else:
        objects = [{"endpoint": each[0], "health": each[1] == "true", "took": each[2]} for each in rows]
        yield _print(options, ("ENDPOINT", "HEALTH", "TOOK", "ERROR"), rows, objects)
    if not is_healthy:
        raise EtcdError("unhealthy cluster")


def _status(process: Process, options: ProgramOptions, _: Sequence[str]) -> Work:
    status = yield from _read_status(process)
    leader = next((each["name"] for each in status["members"] if each["runs"]), "")
    rows, objects, failed, version = [], [], False, _version_of(process)
    for endpoint in _endpoints(process, options, status):
        problem = _problem_of(process, options, endpoint, status)
        host = endpoint.rpartition("://")[2].rpartition(":")[0]
        member = _member_at(process, host, status)
        if problem or member is None:
            yield from _report_failure(process, endpoint, problem)
            yield Output(
                2, f"Failed to get the status of endpoint {endpoint} (context deadline exceeded)\n".encode()
            )
            failed = True
            continue
        size, index = decimal_size(status["size"]), str(status["revision"])
        is_leader = str(member["name"] == leader).lower()
        rows.append((
            endpoint, _identifier(member["name"]), version, f"{_minor_of(version)}.0", size, size, "0%", _QUOTA, is_leader, "false", "2", index, index, "",
            "", "false",
        ))  # fmt: skip
        header = {
            "member_id": int(_identifier(member["name"]), 16),
            "revision": status["revision"],
            "raft_term": 2,
        }
        objects.append(
            {"Endpoint": endpoint, "Status": {"header": header, "version": version, "dbSize": status["size"]}}
        )
    header_row = (
        "ENDPOINT", "ID", "VERSION", "STORAGE VERSION", "DB SIZE", "IN USE", "PERCENTAGE NOT IN USE", "QUOTA", "IS LEADER", "IS LEARNER",
        "RAFT TERM", "RAFT INDEX", "RAFT APPLIED INDEX", "ERRORS", "DOWNGRADE TARGET VERSION", "DOWNGRADE ENABLED",
    )  # fmt: skip
    yield _print(options, header_row, rows, objects)
    if failed:
        raise EtcdError("context deadline exceeded")


def _member_at(process: Process, host: str, status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the member at a host; None if there is none."""
    is_own = host in ("127.0.0.1", "localhost", process.host.name)
    address = process.host.address if is_own else host
    return next((each for each in status["members"] if each["address"] == address), None)


def _member_list(process: Process, options: ProgramOptions, _: Sequence[str]) -> Work:
    status = yield from _connect(process, options)
    rows = [
        (
            _identifier(each["name"]), "started", each["name"], f"https://{each['address']}:2380", f"https://{each['address']}:{_PORT}",
            "false",
        )
        for each in status["members"]
    ]  # fmt: skip
    header = ("ID", "STATUS", "NAME", "PEER ADDRS", "CLIENT ADDRS", "IS LEARNER")
    objects = {
        "members": [
            {"ID": int(row[0], 16), "name": row[2], "peerURLs": [row[3]], "clientURLs": [row[4]]}
            for row in rows
        ]
    }
    yield _print(options, header, rows, objects)


# --- snapshots


def _save(process: Process, options: ProgramOptions, words: Sequence[str]) -> Work:
    if len(words) != 1:
        raise EtcdError("snapshot save expects one argument")
    path = process.path(words[0])
    status = yield from _connect(process, options)
    version = _version_of(process)
    snapshot = EtcdSnapshot(
        revision=status["revision"],
        keys=status["keys"],
        size=status["size"],
        version=f"{_minor_of(version)}.0",
    )
    try:
        process.host.files.write(path, encode(snapshot), mode=0o600)
    except FileError as error:
        raise EtcdError(f"could not open {words[0]}.part ({str(error).lower()})") from None
    yield Output(2, _log("saved", path=words[0]))
    yield write_text(f"Snapshot saved at {words[0]}\nServer version {version}\n")


def _log(message: str, **fields: str) -> bytes:
    return orjson.dumps({"level": "info", "msg": message, **fields}) + b"\n"


def _read(process: Process, words: Sequence[str]) -> EtcdSnapshot:
    if len(words) != 1:
        raise EtcdError("snapshot status requires exactly one argument")
    try:
        data = process.host.files.read(process.path(words[0]))
    except FileError:
        raise EtcdError(f"stat {words[0]}: no such file or directory") from None
    snapshot = decode(data)
    if snapshot is None:
        raise EtcdError(
            "snapshot file integrity check failed. 512 bytes expected, got a file that no snapshot save has written"
        )
    return snapshot


def _snapshot_status(process: Process, options: ProgramOptions, words: Sequence[str]) -> Work:
    yield from _deprecated(process, "status")
    snapshot = _read(process, words)
    digest = f"{crc32(encode(structs.replace(snapshot, restored=''))):x}"
    row = (digest, str(snapshot.revision), str(snapshot.keys), decimal_size(snapshot.size), snapshot.version)
    objects = {
        "hash": int(digest, 16), "revision": snapshot.revision, "totalKey": snapshot.keys, "totalSize": snapshot.size,
        "version": snapshot.version,
    }  # fmt: skip
    yield _print(options, ("HASH", "REVISION", "TOTAL KEYS", "TOTAL SIZE", "STORAGE VERSION"), [row], objects)


def _restore(process: Process, options: ProgramOptions, words: Sequence[str]) -> Work:
    yield from _deprecated(process, "restore")
    snapshot = _read(process, words)
    named = options.get("data-dir") or f"{options.get('name', 'default')}.etcd"
    folder, files = process.path(named), process.host.files
    if files.exists(folder) and any(files.children(folder)):
        raise EtcdError(f'data-dir "{named}" not empty or could not be read')
    yield from ask(process, "etcd.check", {"revision": snapshot.revision})
    now = process.host.now_running()
    database = join(folder, DATABASE)
    restored = structs.replace(snapshot, restored=f"{process.host.name}-{now.timestamp():.6f}")
    log = join(folder, "member/wal/0000000000000000-0000000000000000.wal")
    try:
        for path, data in ((database, encode(restored)), (log, b"")):
            files.make_directory(dirname(path), parents=True, mode=0o700)
            files.write(path, data, mode=0o600)
    except FileError as error:
        raise EtcdError(f"mkdir {named}: {str(error).lower()}") from None
    yield Output(
        2, _log("restoring snapshot", path=words[0], **{"wal-dir": dirname(log), "data-dir": folder})
    )
    yield Output(2, _log("restored snapshot", path=words[0], **{"wal-dir": dirname(log), "data-dir": folder}))


def _deprecated(process: Process, command: str) -> Work:
    if basename(process.name) == "etcdctl":
        yield Output(2, f"Deprecated: Use `etcdutl snapshot {command}` instead.\n\n".encode())


def _version(process: Process, _: ProgramOptions, __: Sequence[str]) -> Work:
    version = _version_of(process)
    yield write_text(f"{basename(process.name)} version: {version}\nAPI version: {_minor_of(version)}\n")


_UTL: Final[Mapping[str, Command]] = {
    "snapshot status": _snapshot_status,
    "snapshot restore": _restore,
    "version": _version,
}
_CTL: Final[Mapping[str, Command]] = {
    "snapshot save": _save,
    "endpoint health": _health,
    "endpoint status": _status,
    "member list": _member_list,
    **_UTL,
}
