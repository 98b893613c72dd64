"""The options of curl, and its reports of a transfer: -v and --write-out."""

from typing import Final

from msgspec import Struct

from mockube.container_runtime.simulated.network.calls import HttpRequest, Reply
from mockube.container_runtime.simulated.shell.process import Process, UnknownProgram

from .urls import Url

OPTIONS: Final = {
    "-s": "silent",
    "--silent": "silent",
    "-S": "show-error",
    "--show-error": "show-error",
    "-f": "fail",
    "--fail": "fail",
    "--fail-with-body": "fail-with-body",
    "-o": "output=",
    "--output": "output=",
    "-O": "remote-name",
    "--remote-name": "remote-name",
    "-w": "write-out=",
    "--write-out": "write-out=",
    "-X": "request=",
    "--request": "request=",
    "-H": "header=",
    "--header": "header=",
    "-d": "data=",
    "--data": "data=",
    "--data-ascii": "data=",
    "--data-binary": "data-binary=",
    "--data-raw": "data-raw=",
    "--data-urlencode": "data-urlencode=",
    "--json": "json=",
    "-G": "get",
    "--get": "get",
    "-T": "upload=",
    "--upload-file": "upload=",
    "-I": "head",
    "--head": "head",
    "-i": "include",
    "--include": "include",
    "-v": "verbose",
    "--verbose": "verbose",
    "-L": "location",
    "--location": "location",
    "--max-redirs": "max-redirs=",
    "-k": "insecure",
    "--insecure": "insecure",
    "--cacert": "cacert=",
    "-E": "cert=",
    "--cert": "cert=",
    "--key": "key=",
    "-m": "max-time=",
    "--max-time": "max-time=",
    "--connect-timeout": "connect-timeout=",
    "--interface": "interface=",
    "--retry": "retry=",
    "--retry-delay": "retry-delay=",
    "--retry-max-time": "retry-max-time=",
    "--retry-connrefused": "retry-refused",
    "--retry-all-errors": "retry-all",
    "-A": "agent=",
    "--user-agent": "agent=",
    "-u": "user=",
    "--user": "user=",
    "-e": "referer=",
    "--referer": "referer=",
    "-b": "cookie=",
    "--cookie": "cookie=",
    "--url": "url=",
    "-4": "ignored",
    "--ipv4": "ignored",
    "-g": "ignored",
    "--globoff": "ignored",
    "-N": "ignored",
    "--no-buffer": "ignored",
    "-#": "ignored",
    "--progress-bar": "ignored",
    "--no-progress-meter": "ignored",
    "--compressed": "ignored",
    "--http1.1": "ignored",
    "--http1.0": "ignored",
    "--http2": "ignored",
    "-q": "ignored",
    "--noproxy": "ignored=",
    "--tcp-nodelay": "ignored",
    "--path-as-is": "ignored",
}
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t"}


class Transfer(Struct):
    """What is known of a transfer for `--write-out`."""

    url: Url | None = None
    reply: Reply | None = None
    address: str = ""
    redirects: int = 0
    began: float = 0.0
    exit_code: int = 0
    message: str = ""

    @property
    def status(self) -> int:
        """The status code of the last response; 0 without one."""
        return self.reply.status if self.reply is not None else 0


def conversation(request: HttpRequest, url: Url, reply: Reply) -> str:
    """Return the report of a transfer for -v."""
    sent = [
        f"{request.method} {request.path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in request.headers),
        "",
    ]
    received = [
        f"HTTP/1.1 {reply.status} {reply.reason}",
        *(f"{name}: {value}" for name, value in reply.headers),
        "",
    ]
    return "".join(
        (
            f"*   Trying {request.address}:{request.port}...\n",
            f"* Connected to {url.host} ({request.address}) port {request.port}\n",
            *(f"> {line}\n" for line in sent),
            *(f"< {line}\n" for line in received),
            f"* Connection #0 to host {url.host} left intact\n",
        )
    )


def write_out(process: Process, template: str, transfer: Transfer) -> str:
    """Return the text of --write-out, with its variables and escapes."""
    reply, url = transfer.reply, transfer.url
    took = process.host.now_running().timestamp() - transfer.began
    code = f"{transfer.status:03}"
    variables = {
        "http_code": code,
        "response_code": code,
        "http_version": "1.1" if reply is not None else "0",
        "time_total": f"{took:.6f}",
        "time_connect": f"{took:.6f}",
        "remote_ip": transfer.address,
        "remote_port": str(url.port) if url is not None else "0",
        "url_effective": url.text if url is not None else "",
        "num_redirects": str(transfer.redirects),
        "size_download": str(len(reply.body)) if reply is not None else "0",
        "content_type": reply.header("content-type") if reply is not None else "",
        "exitcode": str(transfer.exit_code),
        "errormsg": transfer.message,
        "method": "",
        "scheme": url.scheme.upper() if url is not None else "",
    }
    text, rest = "", template
    while rest:
        index = min((place for place in (rest.find("%"), rest.find("\\")) if place >= 0), default=len(rest))
        text, rest = text + rest[:index], rest[index:]
        if rest.startswith("%{") and "}" in rest:
            name, _, rest = rest[2:].partition("}")
            if name not in variables:
                raise UnknownProgram(f"curl --write-out %{{{name}}}")
            text += variables[name]
        elif rest.startswith("\\") and rest[1:2] in _ESCAPES:
            text, rest = text + _ESCAPES[rest[1]], rest[2:]
        elif rest:
            text, rest = text + rest[0], rest[2:] if rest.startswith("%%") else rest[1:]
    return text
