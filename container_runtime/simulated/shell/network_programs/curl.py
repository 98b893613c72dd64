"""curl, for HTTP."""

import base64
from collections.abc import Generator
from typing import Final
from urllib.parse import urlencode, urlsplit

from mockube.apimachinery.gotext import int_or_none
from mockube.container_runtime.simulated.network.calls import HttpRequest, Reply
from mockube.container_runtime.simulated.shell import limits
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
    UnknownProgram,
    read_input,
)
from mockube.container_runtime.simulated.shell.redirection import open_output
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .curl_reports import OPTIONS, Transfer, conversation, write_out
from .network import call, resolve, wait_for_failure
from .server_certificates import problem_of
from .urls import Url, parse_url

_AGENT: Final = "curl/8.5.0"
_CONNECT_LIMIT: Final = 300.0
_MAX_REDIRECTS: Final = 50
"""The default of --max-redirs."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TRANSIENT: Final = frozenset({408, 429, 500, 502, 503, 504})
_TIMED_OUT: Final = 28
_REFUSED: Final = 7


class _Failed(Exception):
    """The end of a transfer with an exit code of curl's, and its message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def curl(process: Process) -> Run:
    options = simulated_options(process, OPTIONS)
    urls = [*options.all("url"), *options.arguments]
    if not urls:
        yield Output(
            2,
            b"curl: (2) no URL specified\ncurl: try 'curl --help' or 'curl --manual' for more information\n",
        )
        return 2
    code = 0
    for text in urls:
        code = yield from _transfer_with_retries(process, options, text)
    return code


def _transfer_with_retries(process: Process, options: ProgramOptions, text: str) -> Run:
    retries, delay = int_or_none(options.get("retry", "0")) or 0, 1.0
    fixed = _number(options, "retry-delay")
    data = yield from _body(process, options)
    while True:
        transfer = Transfer(began=process.host.now_running().timestamp())
        try:
            yield from _transfer(process, options, text, data, transfer)
        except _Failed as failure:
            transfer.exit_code, transfer.message = failure.code, str(failure)
        if not retries or not _is_transient(options, transfer):
            break
        seconds = fixed or delay
        if not _is_quiet(options):
            problem = "timeout" if transfer.exit_code == _TIMED_OUT else _problem(transfer)
            yield Output(
                2,
                f"curl: Warning: Problem: {problem}. Will retry in {seconds:g} "
                f"{'second' if seconds == 1 else 'seconds'}. {retries} {'retry' if retries == 1 else 'retries'} left.\n".encode(),
            )
        yield Sleep(seconds)
        retries, delay = retries - 1, min(delay * 2, 600.0)
    if transfer.exit_code and not _is_quiet(options):
        yield Output(2, f"curl: ({transfer.exit_code}) {transfer.message}\n".encode())
    if "write-out" in options:
        yield Output(1, write_out(process, options.get("write-out"), transfer).encode())
    return transfer.exit_code


def _problem(transfer: Transfer) -> str:
    return "connection refused" if transfer.exit_code == _REFUSED else "HTTP error"


def _is_quiet(options: ProgramOptions) -> bool:
    return "silent" in options and "show-error" not in options


def _is_transient(options: ProgramOptions, transfer: Transfer) -> bool:
    if "retry-all" in options:
        return transfer.exit_code != 0 or transfer.status in _TRANSIENT
    return (
        transfer.exit_code == _TIMED_OUT
        or transfer.status in _TRANSIENT
        or (transfer.exit_code == _REFUSED and "retry-refused" in options)
    )


def _transfer(
    process: Process, options: ProgramOptions, text: str, data: bytes | None, transfer: Transfer
) -> Generator[Effect, bytes | None, None]:
    try:
        url = parse_url(text)
    except ValueError as error:
        if "protocol" in str(error):
            raise _Failed(1, f'Protocol "{text.partition(":")[0]}" not supported') from None
        raise _Failed(3, "URL rejected: Malformed input to a URL function") from None
    if data is not None and "get" in options:
        joint = "&" if "?" in url.target else "?"
        url = parse_url(f"{url.text}{joint}{data.decode('utf-8', 'replace')}")
        data = None
    method = _method(options, has_data=data is not None)
    most = int_or_none(options.get("max-redirs", "")) or _MAX_REDIRECTS
    while True:
        transfer.url = url
        reply = transfer.reply = yield from _request(process, options, method, data, transfer)
        location = reply.header("location")
        if "location" not in options or reply.status not in _REDIRECTS or not location:
            break
        transfer.redirects += 1
        if transfer.redirects > most:
            raise _Failed(47, f"Maximum ({most}) redirects followed")
        try:
            url = url.join(location)
        except ValueError:
            raise _Failed(3, "URL rejected: Malformed input to a URL function") from None
    fails = reply.status >= 400 and ("fail" in options or "fail-with-body" in options)
    if not fails or "fail-with-body" in options:
        yield from _write_body(process, options, url, reply)
    if fails:
        raise _Failed(22, f"The requested URL returned error: {reply.status}")


def _method(options: ProgramOptions, *, has_data: bool) -> str:
    if "request" in options:
        return options.get("request")
    if "head" in options:
        return "HEAD"
    if "upload" in options:
        return "PUT"
    return "POST" if has_data else "GET"


def _request(
    process: Process, options: ProgramOptions, method: str, data: bytes | None, transfer: Transfer
) -> Generator[Effect, bytes | None, Reply]:
    url = transfer.url
    assert url is not None
    limit = min(
        _number(options, "connect-timeout") or _CONNECT_LIMIT, _number(options, "max-time") or _CONNECT_LIMIT
    )
    resolution = yield from resolve(process, url.host, limit=limit)
    if resolution.has_timed_out and limit < 10:
        raise _Failed(_TIMED_OUT, f"Resolving timed out after {limit * 1000:.0f} milliseconds")
    if not resolution.addresses:
        raise _Failed(6, f"Could not resolve host: {url.host}")
    transfer.address = resolution.addresses[0]
    request = HttpRequest(
        address=transfer.address,
        port=url.port,
        method=method,
        path=url.target,
        headers=_headers(options, url, data),
        body=data or b"",
        uses_tls=url.scheme == "https",
        certificate=_client_file(process, options.get("cert")),
        key=_client_file(process, options.get("key") or options.get("cert")),
    )
    reply = yield from call(process, request)
    if not reply.is_open:
        if (yield from wait_for_failure(reply, limit)):
            raise _Failed(_TIMED_OUT, f"Connection timed out after {limit * 1000:.0f} milliseconds")
        took = (process.host.now_running().timestamp() - transfer.began) * 1000
        code = _TIMED_OUT if reply.outcome == "timeout" else _REFUSED
        problem = (
            f"Failed to connect to {url.host} port {url.port} after {took:.0f} ms: Couldn't connect to server"
        )
        raise _Failed(code, problem)
    _check_tls(process, options, request, reply)
    if reply.status == 0:
        raise _Failed(52, "Empty reply from server")
    if "verbose" in options:
        yield Output(2, conversation(request, url, reply).encode())
    return reply


def _client_file(process: Process, path: str) -> bytes:
    """Return the certificate or the key of the client, as PEM."""
    if not path:
        return b""
    try:
        data = process.host.files.read(process.path(path))
    except FileError:
        data = b""
    if b"-----BEGIN" not in data:
        raise _Failed(
            58,
            f"could not load PEM client certificate from {path}, no start line, (no key found, wrong pass phrase, or wrong file format?)",
        )
    return data


def _check_tls(process: Process, options: ProgramOptions, request: HttpRequest, reply: Reply) -> None:
    if not request.uses_tls:
        return
    if not reply.uses_tls:
        raise _Failed(35, "OpenSSL/3.0.13: error:0A00010B:SSL routines::wrong version number")
    if "insecure" in options or not reply.is_certificate_known:
        return
    path = options.get("cacert")
    authority = b""
    if path:
        try:
            authority = process.host.files.read(process.path(path)).strip()
        except FileError:
            raise _Failed(77, f"error setting certificate file: {path}") from None
    problem = ""
    if reply.certificate:
        host = urlsplit(f"//{dict(request.headers).get('Host', '')}").hostname or ""
        problem = problem_of(reply.certificate, authority, host)
    elif not reply.authority or authority != reply.authority.strip():
        problem = "SSL certificate problem: unable to get local issuer certificate"
    if problem:
        raise _Failed(60, f"{problem}\nMore details here: https://curl.se/docs/sslcerts.html")


def _headers(options: ProgramOptions, url: Url, data: bytes | None) -> tuple[tuple[str, str], ...]:
    headers = {"Host": url.authority, "User-Agent": options.get("agent", _AGENT), "Accept": "*/*"}
    user = options.get("user") or url.user
    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
    if "referer" in options:
        headers["Referer"] = options.get("referer")
    if "cookie" in options:
        headers["Cookie"] = options.get("cookie")
    if "json" in options:
        headers |= {"Content-Type": "application/json", "Accept": "application/json"}
    elif data is not None and "upload" not in options:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    names = {name.lower(): name for name in headers}
    for text in options.all("header"):
        name, colon, value = text.partition(":")
        if not colon or any(character in text for character in "\r\n"):
            continue
        headers.pop(names.pop(name.strip().lower(), ""), None)
        if value.strip():
            headers[name.strip()] = value.strip()
    return tuple(headers.items())


def _body(process: Process, options: ProgramOptions) -> Generator[Effect, bytes | None, bytes | None]:
    parts = list[bytes]()
    for name in ("data", "data-binary", "data-raw", "data-urlencode", "json"):
        for text in options.all(name):
            if name in ("data", "data-binary", "json") and text.startswith("@"):
                content = yield from _read(process, text[1:])
                parts.append(content if name != "data" else content.replace(b"\n", b"").replace(b"\r", b""))
            elif name == "data-urlencode":
                key, equals, value = text.partition("=")
                parts.append(urlencode({key: value}).encode() if equals else text.encode())
            else:
                parts.append(text.encode())
    if "upload" in options:
        return (yield from _read(process, options.get("upload")))
    joint = b"" if "json" in options else b"&"
    return joint.join(parts) if parts else None


def _read(process: Process, name: str) -> Generator[Effect, bytes | None, bytes]:
    """Read a file, or the standard input for -; a file that cannot be read is empty, as for curl."""
    if name in ("-", "."):
        content = bytearray()
        while len(content) < limits.MAX_UPLOAD and (data := (yield from read_input(65536))):
            content += data
        return bytes(content)
    try:
        return process.host.files.read(process.path(name))
    except FileError:
        yield Output(
            2, f'Warning: Couldn\'t read data from file "{name}", this makes an empty POST.\n'.encode()
        )
        return b""


def _number(options: ProgramOptions, name: str) -> float:
    try:
        return min(max(float(options.get(name) or 0), 0.0), 1e6)
    except ValueError:
        raise UnknownProgram(f"curl --{name} {options.get(name)}") from None


def _write_body(
    process: Process, options: ProgramOptions, url: Url, reply: Reply
) -> Generator[Effect, bytes | None, None]:
    head = b""
    if "include" in options or "head" in options:
        lines = [
            f"HTTP/1.1 {reply.status} {reply.reason}",
            *(f"{name}: {value}" for name, value in reply.headers),
        ]
        head = "\r\n".join([*lines, "", ""]).encode()
    content = head + (b"" if "head" in options else reply.body)
    name = options.get("output") or (url.file_name if "remote-name" in options else "-")
    if name == "-":
        if content:
            yield Output(1, content)
        return
    if not name:
        raise _Failed(23, "Remote file name has no length")
    try:
        output = open_output(process, name)
        yield from output.write(content)
    except FileError as error:
        raise _Failed(23, f"client returned ERROR on write, {name}: {error}") from None
