"""A request while it is answered: its path, its location, and the values of variables. Pure."""

from collections.abc import Mapping, Sequence
from posixpath import normpath
from typing import Final

from mockube.container_runtime.simulated.server_contract import Request
from mockube.extras.servers.patterns import ConfiguredPattern
from mockube.network.request_paths import nginx_path

from .configuration import Configuration, Location, Server, full_path
from .parser import ConfigurationError, Directive
from .patterns import compile_pattern
from .variables import expand

MAX_LOGGED: Final = 2000
"""The characters of a path that a line repeats."""
_MAX_TEXT: Final = 1 << 16
"""The characters of a text with the values of variables."""
_MAX_MAPS: Final = 10
"""How many maps may look each other up."""


class RequestState:
    def __init__(self, configuration: Configuration, request: Request) -> None:
        self._configuration = configuration
        self._request = request
        path, _, self.arguments = request.target.partition("?")
        self.uri = nginx_path(path) or ""
        """Its path, or that of an internal redirect; "" if nginx refuses it."""
        self.values: dict[str, str] = {}
        """The variables that rewrites have set."""
        self.groups: Mapping[str, str] = {}
        """The groups of the latest match."""
        self._expanding = 0
        host = host_alone(request.headers.get("host", ""))
        self.server = configuration.server_for(request.port, host) or Server(listens=(), root=Location())
        self.location = self.server.root
        self.status = 200
        self.size = 0
        self.upstream = ""
        self.upstream_status = ""

    def path_of(self, location: Location, uri: str) -> str:
        """Return the path of the file for the path of a request."""
        if location.alias:
            root = self.expand(location.alias)
            if location.pattern is not None:
                return full_path(root)
            rest = uri.removeprefix(location.path) if uri.startswith(location.path) else uri
            return normpath(full_path(root + rest))
        root = full_path(self.expand(location.get("root", "html")))
        return normpath(f"{root.rstrip('/')}/{uri.lstrip('/')}")

    def expand(self, text: str) -> str:
        """Return a text with the values of variables, as long as they do not grow without bound."""
        return expand(text, self.value)[:_MAX_TEXT]

    def logged_value(self, name: str) -> str:
        return self.value(name) or "-"

    def value(self, name: str) -> str:
        if name in self.groups:
            return self.groups[name]
        if name in self.values:
            return self.values[name]
        if name in self._configuration.maps and self._expanding < _MAX_MAPS:
            self._expanding += 1
            try:
                return self._mapped(*self._configuration.maps[name])
            finally:
                self._expanding -= 1
        for prefix, values in (
            ("http_", self._request.headers),
            ("arg_", self._query()),
            ("cookie_", self._cookies()),
        ):
            if name.startswith(prefix):
                key = name.removeprefix(prefix)
                return values.get(key.replace("_", "-") if prefix == "http_" else key, "")
        return self._built_in(name)

    def _mapped(self, source: str, entries: Sequence[Sequence[str]]) -> str:
        value, default = self.expand(source), ""
        is_hosts = any(entry[0] == "hostnames" for entry in entries)
        for entry in entries:
            key, *result = entry
            if not result:
                continue
            if key == "default":
                default = result[0]
            elif key.startswith("~"):
                pattern = self._map_pattern(key)
                groups = pattern.search(value) if pattern is not None else None
                if groups is not None:
                    self.groups = {**self.groups, **groups}
                    return self.expand(result[0])
            elif key.removeprefix("\\").lower() == value.lower() or (is_hosts and _is_host(value, key)):
                return self.expand(result[0])
        return self.expand(default)

    def _map_pattern(self, key: str) -> ConfiguredPattern | None:
        directive = Directive(name="map", file="", line=0)
        try:
            return compile_pattern(directive, key[1:].removeprefix("*"), ignores_case=key.startswith("~*"))
        except ConfigurationError:
            return None

    def _query(self) -> Mapping[str, str]:
        pairs = (pair.partition("=") for pair in self.arguments.split("&"))
        return {name.lower(): value for name, _, value in pairs}

    def _cookies(self) -> Mapping[str, str]:
        pairs = (pair.strip().partition("=") for pair in self._request.headers.get("cookie", "").split(";"))
        return {name: value for name, _, value in pairs}

    def _built_in(self, name: str) -> str:
        request, location = self._request, self.location
        forwarded = request.headers.get("x-forwarded-for", "")
        root = full_path(location.get("root", "html"))
        values = {
            "args": self.arguments,
            "query_string": self.arguments,
            "is_args": "?" if self.arguments else "",
            "uri": self.uri,
            "document_uri": self.uri,
            "request_uri": request.target,
            "request_method": request.method,
            "request": f"{request.method} {request.target[:MAX_LOGGED]} HTTP/1.1",
            "request_body": request.body[:MAX_LOGGED].decode("utf-8", "replace"),
            "request_length": str(len(request.target) + len(request.body)),
            "server_protocol": "HTTP/1.1",
            "scheme": "https" if request.tls else "http",
            "https": "on" if request.tls else "",
            "host": host_alone(request.headers.get("host", "")) or (self.server.names or ("",))[0],
            "hostname": request.hostname,
            "server_name": (self.server.names or ("",))[0],
            "server_port": str(request.port),
            "server_addr": request.address,
            "remote_addr": request.client,
            "remote_port": "40000",
            "realip_remote_addr": request.client,
            "proxy_add_x_forwarded_for": f"{forwarded}, {request.client}" if forwarded else request.client,
            "proxy_port": self.upstream.rpartition(":")[2],
            "content_type": request.headers.get("content-type", ""),
            "content_length": request.headers.get("content-length", ""),
            "document_root": root,
            "realpath_root": root,
            "request_filename": self.path_of(location, self.uri) if name == "request_filename" else "",
            "status": str(self.status),
            "body_bytes_sent": str(self.size),
            "bytes_sent": str(self.size),
            "request_time": "0.000",
            "upstream_addr": self.upstream,
            "upstream_status": self.upstream_status,
            "upstream_response_time": "0.000" if self.upstream else "",
            "time_local": request.time_local,
            "time_iso8601": request.time_iso8601,
            "connection": str(request.number),
            "connection_requests": "1",
            "request_id": f"{request.number:032x}",
            "nginx_version": "1.29.4",
            "pid": "29",
            "pipe": ".",
        }
        return values.get(name, "")


def host_alone(host: str) -> str:
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def _is_host(value: str, name: str) -> bool:
    return (name.startswith(("*.", ".")) and value.endswith(name.lstrip("*"))) or (
        name.endswith(".*") and value.startswith(name[:-1])
    )
