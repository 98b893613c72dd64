"""What HAProxy answers to a request: rules, redirects, its own pages, and the servers of a backend. Pure."""

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Final

from msgspec.structs import replace

from mockube.container_runtime.simulated.configured.contract import (
    Answering,
    FileReader,
    ProxyCall,
    ProxyReply,
    Request,
    Response,
)
from mockube.container_runtime.simulated.configured.patterns import compile_text, with_groups

from .configuration import EXPORTER, HaproxyConfiguration, Proxy, ProxyRule, ServerAddress
from .prometheus import CONTENT_TYPE, metrics_text

_TEXTS: Final = {
    400: "Your browser sent an invalid request.",
    401: "You need a valid user and password to access this content.",
    403: "Request forbidden by administrative rules.",
    404: "The resource could not be found.",
    405: "A request was made of a resource using a request method not supported by that resource",
    408: "Your browser didn't send a complete request in time.",
    410: "The resource is no longer available and will not be available again.",
    425: "Your browser sent early data.",
    429: "You have sent too many requests in a given amount of time.",
    500: "An internal server error occurred.",
    501: "The server does not support the functionality required to fulfill the request.",
    502: "The server returned an invalid or incomplete response.",
    503: "No server is available to handle this request.",
    504: "The server didn't respond in time.",
}
_REASONS: Final = {408: "Request Time-out", 504: "Gateway Time-out"}
_EXPRESSION: Final = re.compile(r"%\[([^\]]*+)(?:\]|\Z)|%(\w+)")
"""An expression that is not closed ends with the text, so that no part of it is read twice."""
_MAX_TEXT: Final = 65536


def answer(configuration: HaproxyConfiguration, request: Request, files: FileReader) -> Answering:
    """Return the response to a request, and what is logged of it."""
    return (yield from _Exchange(configuration, request, files).run())


class _Exchange:
    def __init__(self, configuration: HaproxyConfiguration, request: Request, files: FileReader) -> None:
        self._configuration = configuration
        self._request = request
        self._files = files
        self._frontend, _ = configuration.ports[request.port]
        self._backend = self._frontend
        self._server = "<NOSRV>"
        self._state = "LR--"
        path, _, self._query = request.target.partition("?")
        self._path = path
        self._headers = dict(request.headers)

    def run(self) -> Answering:
        response = self._own_response() or (yield from self._forward())
        for rule in (*self._frontend.response_rules, *self._backend_rules("response")):
            self._change_response(rule, response)
        self._log(response)
        return response

    def _backend_rules(self, kind: str) -> Sequence[ProxyRule]:
        if self._backend is self._frontend:
            return ()
        return self._backend.request_rules if kind == "request" else self._backend.response_rules

    def _holds(self, rule: ProxyRule) -> bool:
        request = replace(self._request, headers=self._headers)
        return rule.condition is None or rule.condition.holds(request, self._path)

    def _own_response(self) -> Response | None:
        """Return a response that needs no server; it chooses the backend."""
        if self._frontend.monitor_uri == self._path:
            return Response(
                status=200,
                headers=[("cache-control", "no-cache")],
                body=b"<html><body><h1>200 OK</h1>\nService ready.\n</body></html>\n",
            )
        if (response := self._apply(self._frontend.request_rules)) is not None:
            return response
        if self._is_stats(self._frontend):
            return self._stats()
        name = next((rule.name for rule in self._frontend.backends if self._holds(rule)), "")
        name = name or self._frontend.default_backend
        if "%" in name:
            name = self._expand(name)
        if name:
            backend = self._configuration.proxies.get(name)
            if backend is None:
                return self._page(503, "SC--")
            self._backend = backend
            if (response := self._apply(backend.request_rules)) is not None:
                return response
            if self._is_stats(backend):
                return self._stats()
        return None

    def _is_stats(self, proxy: Proxy) -> bool:
        uri = proxy.stats_uri.partition("?")
        if not proxy.stats_uri:
            return False
        return self._path.startswith(uri[0]) and (not uri[1] or self._query.startswith(uri[2]))

    def _stats(self) -> Response:
        self._server = "<STATS>"
        rows = "".join(
            f"<tr><td>{proxy.name}</td><td>{server.name}</td></tr>\n"
            for proxy in self._configuration.proxies.values()
            for server in proxy.servers
        )
        text = f"<html><head><title>Statistics Report for HAProxy</title></head>\n<body><h1>HAProxy</h1>\n<table>\n{rows}</table>\n</body></html>\n"
        return Response(status=200, headers=[("cache-control", "no-cache")], body=text.encode())

    def _metrics(self) -> Response:
        self._server = "<PROMEX>"
        return Response(
            status=200,
            content_type=CONTENT_TYPE,
            headers=[("cache-control", "no-cache")],
            body=metrics_text(self._configuration, self._request.number).encode(),
        )

    # --- rules of requests

    def _apply(self, rules: Sequence[ProxyRule]) -> Response | None:
        for rule in rules:
            if not self._holds(rule):
                continue
            match rule.name:
                case "allow":
                    return None
                case "deny" | "tarpit" | "reject" | "silent-drop":
                    return self._deny(rule)
                case "return":
                    return self._return(rule)
                case "redirect":
                    return self._redirect(rule)
                case "use-service" if rule.arguments[:1] == (EXPORTER,):
                    return self._metrics()
                case _:
                    self._change_request(rule)
        return None

    def _deny(self, rule: ProxyRule) -> Response:
        if rule.name in ("reject", "silent-drop"):
            return Response(status=0)
        status = _option(rule, "deny_status") or _option(rule, "status")
        default = 500 if rule.name == "tarpit" else 403
        return self._page(int(status[:3]) if status.isdecimal() else default, "PR--")

    def _return(self, rule: ProxyRule) -> Response:
        status = _option(rule, "status")
        body = _option(rule, "string") or self._expand(_option(rule, "lf-string"))
        headers = [
            (rule.arguments[index + 1], self._expand(rule.arguments[index + 2]))
            for index, word in enumerate(rule.arguments[:-2])
            if word == "hdr"
        ]
        path = _option(rule, "file") or _option(rule, "lf-file")
        data = body.encode("utf-8", "surrogateescape")
        if path:
            try:
                data = self._files.read(path)
            except OSError:
                return self._page(500)
        return Response(
            status=int(status[:3]) if status.isdecimal() else 200,
            content_type=_option(rule, "content-type"),
            headers=headers,
            body=data,
        )

    def _redirect(self, rule: ProxyRule) -> Response:
        code = _option(rule, "code")
        target = self._expand(_option(rule, "location"))
        uri = (
            f"{self._path}?{self._query}"
            if self._query and "drop-query" not in rule.arguments
            else self._path
        )
        if prefix := self._expand(_option(rule, "prefix")):
            target = prefix + uri
        if scheme := self._expand(_option(rule, "scheme")):
            target = f"{scheme}://{self._request.headers.get('host', '')}{uri}"
        status = int(code) if code in ("301", "302", "303", "307", "308") else 302
        return Response(status=status, content_type="", location=target)

    def _change_request(self, rule: ProxyRule) -> None:
        words = rule.arguments
        if rule.name in ("set-header", "add-header") and len(words) > 1:
            self._headers[words[0].lower()] = self._expand(words[1])
        elif rule.name == "del-header" and words:
            self._headers.pop(words[0].lower(), None)
        elif rule.name == "set-path" and words:
            self._path = self._expand(words[0])
        elif rule.name == "replace-path" and len(words) > 1:
            self._path = _replaced(words[0], words[1], self._path)

    def _change_response(self, rule: ProxyRule, response: Response) -> None:
        if not self._holds(rule) or not rule.arguments:
            return
        name = rule.arguments[0]
        if rule.name in ("set-header", "del-header"):
            response.headers[:] = [pair for pair in response.headers if pair[0].lower() != name.lower()]
        if rule.name in ("set-header", "add-header") and len(rule.arguments) > 1:
            response.headers.append((name, self._expand(rule.arguments[1])))

    def _expand(self, text: str) -> str:
        values = {"ci": self._request.client, "fi": self._request.address, "fp": str(self._request.port), "HM": self._request.method,
                  "HP": self._path, "HU": self._request.target, "b": self._backend.name, "f": self._frontend.name, "H": self._request.hostname}  # fmt: skip

        def value(match: re.Match[str]) -> str:
            if not match[1]:
                return values.get(match[2], match[0])
            return self._fetched(match[1]) if match[0].endswith("]") else match[0]

        return _EXPRESSION.sub(value, text)[:_MAX_TEXT]

    def _fetched(self, expression: str) -> str:
        name, *converters = expression.split(",")
        fetch, _, argument = name.partition("(")
        argument = argument.removesuffix(")")
        known = {"path": self._path, "src": self._request.client, "method": self._request.method, "query": self._query, "url": self._request.target,
                 "dst_port": str(self._request.port), "hostname": self._request.hostname, "dst": self._request.address}  # fmt: skip
        text = (
            self._headers.get(argument.lower(), "") if fetch in ("hdr", "req.hdr") else known.get(fetch, "")
        )
        for converter in converters:
            text = {"lower": text.lower(), "upper": text.upper()}.get(converter, text)
        return text

    # --- the servers

    def _forward(self) -> Answering:
        servers = [*self._candidates()]
        for server in servers:
            self._server = server.name
            reply = yield self._call(server)
            if reply.status:
                self._state = "----"
                return self._passed(reply)
            if reply.has_timed_out:
                return self._page(504, "sH--")
        if servers:
            self._server = servers[-1].name
            return self._page(503, "SC--")
        self._server = "<NOSRV>"
        return self._page(503, "SC--")

    def _candidates(self) -> Iterator[ServerAddress]:
        """Yield the servers in the order of their turns."""
        active = [server for server in self._backend.servers if not server.is_disabled]
        main = [server for server in active if not server.is_backup]
        turn = (self._request.number - 1) % max(len(main), 1)
        yield from (*main[turn:], *main[:turn], *(server for server in active if server.is_backup))

    def _call(self, server: ServerAddress) -> ProxyCall:
        headers = {
            name: value
            for name, value in self._headers.items()
            if name not in ("connection", "content-length", "transfer-encoding")
        }
        if "forwardfor" in self._frontend.options or "forwardfor" in self._backend.options:
            headers["x-forwarded-for"] = self._request.client
        return ProxyCall(
            host=server.host,
            port=server.port or self._request.port,
            method=self._request.method,
            path=f"{self._path}?{self._query}" if self._query else self._path,
            headers=tuple(headers.items()),
            tls=server.tls,
            body=self._request.body,
            needs_resolver=server.is_resolved_later,
            uses_search=True,
        )

    def _passed(self, reply: ProxyReply) -> Response:
        headers = {name.lower(): (name, value) for name, value in reply.headers}
        for name in ("connection", "keep-alive", "transfer-encoding", "content-length", "date"):
            headers.pop(name, None)
        return Response(
            status=reply.status,
            content_type=headers.pop("content-type", ("", ""))[1],
            location=headers.pop("location", ("", ""))[1],
            server=headers.pop("server", ("", ""))[1],
            headers=list(headers.values()),
            body=reply.body,
        )

    # --- pages and logs

    def _page(self, status: int, state: str = "LR--") -> Response:
        self._state = state
        path = self._backend.error_files.get(status) or self._frontend.error_files.get(status)
        if path:
            try:
                return _response_of_file(status, self._files.read(path))
            except OSError:
                pass
        reason = _REASONS.get(status) or (
            HTTPStatus(status).phrase if status in {each.value for each in HTTPStatus} else ""
        )
        text = f"<html><body><h1>{status} {reason}</h1>\n{_TEXTS.get(status, '')}\n</body></html>\n"
        return Response(status=status, headers=[("cache-control", "no-cache")], body=text.encode())

    def _log(self, response: Response) -> None:
        stream = self._configuration.log_stream
        if not stream or not self._frontend.logs:
            return
        request, now = self._request, self._request.now
        backend = self._backend.name
        if "httplog" not in self._frontend.options:
            line = f"Connect from {request.client}:40000 to {request.address}:{request.port} ({self._frontend.name}/{self._frontend.mode.upper()})"
        else:
            timers = "0/0/0/0/0" if self._state == "----" else "0/-1/-1/-1/0"
            line = (
                f"{request.client}:40000 [{now:%d/%b/%Y:%H:%M:%S}.{now.microsecond // 1000:03}] {self._frontend.name} {backend}/{self._server} {timers} "
                f'{response.status} {len(response.body) + 110} - - {self._state} 1/1/0/0/0 0/0 "{request.method} {request.target[:2000]} HTTP/1.1"'
            )
        response.logs.append(("/dev/stdout" if stream == 1 else "/dev/stderr", line))


def _option(rule: ProxyRule, name: str) -> str:
    words = rule.arguments
    return words[words.index(name) + 1] if name in words[:-1] else ""


def _replaced(pattern: str, target: str, path: str) -> str:
    r"""Return a path with the first match of a pattern replaced; \1 stands for its first group."""
    compiled = compile_text(pattern).compiled
    replaced = (
        None if compiled is None else compiled.replace(path, lambda groups: with_groups(target, groups), 1)
    )
    return path if replaced is None else replaced


def _response_of_file(status: int, data: bytes) -> Response:
    head, _, body = data.replace(b"\r\n", b"\n").partition(b"\n\n")
    headers = [line.partition(": ") for line in head.decode("latin-1").split("\n")[1:]]
    pairs = [
        (name, value)
        for name, _, value in headers
        if name.lower() not in ("content-type", "content-length", "connection")
    ]
    kind = next((value for name, _, value in headers if name.lower() == "content-type"), "text/html")
    return Response(status=status, content_type=kind, headers=pairs, body=body)
