"""wget, as busybox' with the long options of GNU's that are common in charts."""

from collections.abc import Generator
from posixpath import join
from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.hosts import join_host_port
from mockube.container_runtime.simulated.network.calls import HttpRequest, Reply
from mockube.container_runtime.simulated.shell.options import (
    ProgramOptions,
    simulated_options,
)
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Run,
    Sleep,
)
from mockube.container_runtime.simulated.shell.redirection import open_output
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from . import network
from .urls import Url, parse_url

_OPTIONS: Final = {
    "-q": "quiet",
    "--quiet": "quiet",
    "-O": "output=",
    "--output-document": "output=",
    "-S": "headers",
    "--server-response": "headers",
    "-T": "timeout=",
    "--timeout": "timeout=",
    "--connect-timeout": "timeout=",
    "-t": "tries=",
    "--tries": "tries=",
    "--waitretry": "wait=",
    "--retry-connrefused": "retry-refused",
    "--spider": "spider",
    "--header": "header=",
    "--post-data": "data=",
    "--post-file": "data-file=",
    "--method": "method=",
    "--body-data": "data=",
    "-U": "agent=",
    "--user-agent": "agent=",
    "-P": "folder=",
    "--directory-prefix": "folder=",
    "--no-check-certificate": "insecure",
    "--no-verbose": "quiet",
    "-nv": "quiet",
    "-4": "family",
    "-Y": "proxy=",
    "--no-proxy": "family",
    "--ca-certificate": "authority=",
}
_MAX_REDIRECTS: Final = 20
"""The default of --max-redirect."""
_DEFAULT_TIMEOUT: Final = 900.0
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


class _Failed(Exception):
    """The end of wget, with its message."""

    def __init__(self, message: str, *, is_refused: bool = False) -> None:
        super().__init__(message)
        self.is_refused = is_refused


def wget(process: Process) -> Run:
    arguments = [a if a != "-nv" else "-q" for a in process.arguments]
    options = simulated_options(process, _OPTIONS, arguments)
    if not options.arguments:
        yield Output(
            2, b"BusyBox v1.37.0 multi-call binary.\n\nUsage: wget [-cqS] [--spider] [-O FILE] URL...\n"
        )
        return 1
    attempts = int_or_none(options.get("tries", "1")) or 1
    for attempt in range(attempts, 0, -1):
        try:
            for text in options.arguments:
                yield from _download(process, options, text)
        except _Failed as failure:
            if attempt == 1 or (failure.is_refused and "retry-refused" not in options):
                yield process.error(str(failure))
                return 1
            yield Sleep(1)
        else:
            return 0
    return 1


def _download(process: Process, options: ProgramOptions, text: str) -> Generator[Effect, bytes | None, None]:
    try:
        url = parse_url(text)
    except ValueError:
        raise _Failed(f"not an http or ftp url: {text}") from None
    for _ in range(_MAX_REDIRECTS):
        reply = yield from _request(process, options, url)
        location = reply.header("location")
        if reply.status not in _REDIRECTS or not location:
            break
        try:
            url = url.join(location)
        except ValueError:
            raise _Failed(f"not an http or ftp url: {location}") from None
    else:
        raise _Failed("too many redirections")
    if not 200 <= reply.status < 300:
        raise _Failed(f"server returned error: HTTP/1.1 {reply.status} {reply.reason}")
    if "spider" in options:
        if "quiet" not in options:
            yield Output(2, b"remote file exists\n")
        return
    yield from _save(process, options, url, reply.body)


def _request(process: Process, options: ProgramOptions, url: Url) -> Generator[Effect, bytes | None, Reply]:
    limit = _seconds(options)
    resolution = yield from network.resolve(process, url.host, limit=limit)
    if not resolution.addresses:
        raise _Failed(f"bad address '{url.authority}'")
    address = resolution.addresses[0]
    if "quiet" not in options:
        yield Output(
            2, f"Connecting to {url.host}:{url.port} ({join_host_port(address, url.port)})\n".encode()
        )
    request = HttpRequest(
        address=address,
        port=url.port,
        method=_method(options),
        path=url.target,
        headers=(("Host", url.authority), ("User-Agent", options.get("agent", "Wget")), *_headers(options)),
        body=_body(process, options),
        uses_tls=url.scheme == "https",
    )
    reply = yield from network.call(process, request)
    if not reply.is_open:
        if (yield from network.wait_for_failure(reply, limit)):
            raise _Failed("download timed out")
        reason = network.REASONS[reply.outcome]
        raise _Failed(f"can't connect to remote host ({address}): {reason}", is_refused=True)
    if reply.status == 0:
        raise _Failed("error getting response" if not request.uses_tls else "TLS error from peer")
    if "headers" in options:
        lines = [
            f"HTTP/1.1 {reply.status} {reply.reason}",
            *(f"{name}: {value}" for name, value in reply.headers),
        ]
        yield Output(2, "".join(f"  {line}\n" for line in lines).encode())
    return reply


def _seconds(options: ProgramOptions) -> float:
    try:
        return min(max(float(options.get("timeout", str(_DEFAULT_TIMEOUT))), 0.0), 1e6) or _DEFAULT_TIMEOUT
    except ValueError:
        raise _Failed(f"invalid number '{options.get('timeout')}'") from None


def _method(options: ProgramOptions) -> str:
    if "method" in options:
        return options.get("method").upper()
    if "data" in options or "data-file" in options:
        return "POST"
    return "HEAD" if "spider" in options else "GET"


def _headers(options: ProgramOptions) -> tuple[tuple[str, str], ...]:
    pairs = (text.partition(":") for text in options.all("header"))
    return tuple((name.strip(), value.strip()) for name, _, value in pairs)


def _body(process: Process, options: ProgramOptions) -> bytes:
    if "data-file" not in options:
        return options.get("data").encode()
    try:
        return process.host.files.read(process.path(options.get("data-file")))
    except FileError as error:
        raise _Failed(f"can't open '{options.get('data-file')}': {error}") from None


def _save(
    process: Process, options: ProgramOptions, url: Url, body: bytes
) -> Generator[Effect, bytes | None, None]:
    name = options.get("output") or join(options.get("folder"), url.file_name or "index.html")
    if name == "-":
        if "quiet" not in options:
            yield Output(2, b"writing to stdout\n")
        yield Output(1, body)
    else:
        path = process.path(name)
        if "output" not in options and process.host.files.exists(path):
            raise _Failed(f"can't open '{name}': File exists")
        try:
            output = open_output(process, name)
            yield from output.write(body)
        except FileError as error:
            raise _Failed(f"can't open '{name}': {error}") from None
        if "quiet" not in options:
            yield Output(2, f"saving to '{name}'\n".encode())
    if "quiet" not in options:
        bar = "*" * 32
        yield Output(2, f"{name:20} 100% |{bar}| {len(body):5}  0:00:00 ETA\n".encode())
        done = "written to stdout" if name == "-" else f"'{name}' saved"
        yield Output(2, f"{done}\n".encode())
