"""What a parsed configuration of nginx means: servers, their addresses, names and locations, upstreams, logs. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from posixpath import join
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery.hosts import is_address
from mockube.extras.servers.patterns import ConfiguredPattern

from .parser import ConfigurationError, Directive
from .patterns import compile_pattern
from .variables import names_in

PREFIX: Final = "/etc/nginx"
ERROR_LOG: Final = "/var/log/nginx/error.log"
_MAX_PORT: Final = 65535
_LISTEN_OPTIONS: Final = frozenset(
    ["ssl", "http2", "spdy", "quic", "proxy_protocol", "deferred", "bind", "reuseport", "default_server", "default", "multipath"]
)  # fmt: skip
_LISTEN_VALUES: Final = (
    "setfib=",
    "fastopen=",
    "backlog=",
    "rcvbuf=",
    "sndbuf=",
    "accept_filter=",
    "ipv6only=",
    "so_keepalive=",
)
_INHERITED: Final = frozenset(
    [
        "root", "index", "autoindex", "default_type", "types", "charset", "error_log", "server_tokens", "proxy_intercept_errors", "auth_basic",
        "auth_basic_user_file", "proxy_set_header", "add_header", "access_log", "error_page", "allow", "deny", "client_max_body_size",
        "resolver", "proxy_redirect", "absolute_redirect", "port_in_redirect", "server_name_in_redirect", "log_not_found", "try_files",
        "recursive_error_pages", "proxy_hide_header", "expires",
    ]
)  # fmt: skip
_NOT_INHERITED: Final = frozenset({"try_files"})
_LISTS: Final = frozenset(
    {"proxy_set_header", "add_header", "access_log", "error_page", "proxy_hide_header", "access"}
)
"""The settings that a block has all of its own, or else those of the outer one."""
_REWRITES: Final = frozenset({"set", "if", "return", "rewrite", "break"})
_HANDLERS: Final = frozenset(
    {
        "proxy_pass",
        "fastcgi_pass",
        "uwsgi_pass",
        "scgi_pass",
        "grpc_pass",
        "memcached_pass",
        "stub_status",
        "empty_gif",
    }
)
_WITHOUT_ANSWERS: Final = (
    "auth_request", "proxy_cache", "proxy_cache_path", "limit_req", "limit_conn", "sub_filter", "mirror", "dav_methods", "mp4", "flv", "image_filter",
    "xslt_stylesheet", "ssi", "random_index", "secure_link", "slice", "perl", "add_before_body", "add_after_body", "addition_types", "js_content",
    "geo", "geoip_country", "geoip_city", "split_clients", "userid", "referer_hash", "valid_referers", "auth_jwt", "realip", "set_real_ip_from",
    "proxy_bind", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass", "memcached_pass", "perl_set", "ssl_verify_client", "ip_hash", "hash",
)  # fmt: skip
"""The directives that change answers, and that the simulation leaves out."""


class Listen(Struct, frozen=True, kw_only=True):
    address: str = "0.0.0.0"  # noqa: S104 - of a simulated server
    port: int = 80
    tls: bool = False
    is_default: bool = False


class Operation(Struct, frozen=True, kw_only=True):
    """A directive that is executed before the content of a request is found: set, return, rewrite, break, if."""

    name: str
    arguments: tuple[str, ...] = ()
    pattern: ConfiguredPattern | None = None
    inner: "tuple[Operation, ...]" = ()
    location: "Location | None" = None
    """The settings in the block of an `if`."""


class ProxyTarget(Struct, frozen=True, kw_only=True):
    """The value of proxy_pass."""

    scheme: str = "http"
    host: str = ""
    """The host with its port as it is written, or the name of an upstream; it may have variables."""
    uri: str | None = None
    """The path that replaces that of the location; None if the path of the request is sent as it is."""
    text: str = ""

    @property
    def has_variables(self) -> bool:
        return "$" in self.text


class Location(Struct, frozen=True, kw_only=True):
    """The settings of a location, or of a server for the requests of no location."""

    modifier: str = ""
    path: str = ""
    pattern: ConfiguredPattern | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    operations: tuple[Operation, ...] = ()
    alias: str = ""
    try_files: tuple[str, ...] = ()
    proxy: ProxyTarget | None = None
    handler: str = ""
    """The directive that answers besides files: proxy_pass, stub_status, empty_gif, fastcgi_pass."""
    internal: bool = False
    allowed_methods: tuple[str, ...] = ()
    """The methods that limit_except allows; empty without it."""
    locations: "tuple[Location, ...]" = ()

    def get(self, name: str, default: str = "") -> str:
        """Return the first argument of a setting."""
        arguments = self.settings.get(name)
        return arguments[0] if arguments else default


class Server(Struct, frozen=True, kw_only=True):
    listens: tuple[Listen, ...]
    names: tuple[str, ...] = ("",)
    patterns: tuple[ConfiguredPattern, ...] = ()
    root: Location
    """The settings of the server, with its locations."""


class UpstreamServer(Struct, frozen=True, kw_only=True):
    host: str
    port: int
    is_down: bool = False
    is_backup: bool = False


class Upstream(Struct, frozen=True, kw_only=True):
    name: str
    servers: tuple[UpstreamServer, ...]


class HostToResolve(Struct, frozen=True, kw_only=True):
    """A name that nginx looks up when it starts."""

    host: str
    directive: Directive

    def error(self) -> ConfigurationError:
        return self.directive.error(f'host not found in upstream "{self.host}"')


class Configuration(Struct, frozen=True, kw_only=True):
    servers: tuple[Server, ...] = ()
    upstreams: Mapping[str, Upstream] = field(default_factory=dict)
    maps: Mapping[str, tuple[str, tuple[tuple[str, ...], ...]]] = field(default_factory=dict)
    """The variables of map blocks: the text that is looked up, and the entries."""
    formats: Mapping[str, str] = field(default_factory=dict)
    error_log: str = ERROR_LOG
    level: str = "error"
    """The level of the lines in the error log."""
    pid: str = "/run/nginx.pid"
    user: str = ""
    """The user of the workers; "" for that of the image."""
    is_daemon: bool = True
    hosts: tuple[HostToResolve, ...] = ()
    certificates: tuple[Directive, ...] = ()
    """The directives that name files of certificates and keys, which are read at the start."""
    not_simulated: tuple[str, ...] = ()
    """The directives that change answers and are left out."""
    ports: Mapping[int, bool] = field(default_factory=dict)
    """The ports of HTTP, each with whether it needs TLS."""
    stream_ports: tuple[int, ...] = ()
    """The ports of servers in `stream`, whose answers nobody knows."""
    warnings: tuple[str, ...] = ()

    def certificate(self) -> tuple[str, str] | None:
        """Return the files of the first certificate and of its key."""
        paths = {each.name: full_path(each.arguments[0]) for each in reversed(self.certificates)}
        pair = paths.get("ssl_certificate"), paths.get("ssl_certificate_key")
        return (pair[0], pair[1]) if pair[0] and pair[1] else None

    def log_paths(self) -> Iterator[str]:
        """Yield the files that are opened at the start, in their order."""
        yield self.error_log
        for server in self.servers:
            for location in _with_inner(server.root):
                yield from filter(None, [location.get("error_log")])
                yield from (log[0] for log in access_logs(location) if "$" not in log[0])

    def server_for(self, port: int, host: str) -> Server | None:
        """Return the server of a request to a port: by its name, or the default one of the port."""
        candidates = [
            server for server in self.servers if any(listen.port == port for listen in server.listens)
        ]
        if not candidates:
            return None
        host = host.lower().rstrip(".")
        exact = next((server for server in candidates if host in server.names), None)
        if exact is not None:
            return exact
        wildcards = [
            (len(name), server) for server in candidates for name in server.names if _matches_name(host, name)
        ]
        if wildcards:
            return max(wildcards, key=lambda pair: pair[0])[1]
        for server in candidates:
            if any(pattern.search(host) is not None for pattern in server.patterns):
                return server
        defaults = [s for s in candidates if any(each.port == port and each.is_default for each in s.listens)]
        return (defaults or candidates)[0]


def _matches_name(host: str, name: str) -> bool:
    """Return whether a host has one of the names of a server with an asterisk or a dot at its begin or its end."""
    if name.startswith("."):
        return host.endswith(name) or host == name[1:]
    if name.startswith("*."):
        return host.endswith(name[1:])
    return name.endswith(".*") and host.startswith(name[:-1])


def _with_inner(location: Location) -> Iterator[Location]:
    yield location
    for inner in location.locations:
        yield from _with_inner(inner)


def access_logs(location: Location) -> Sequence[tuple[str, ...]]:
    """Return the logs of requests, each a path with its format; nothing if they are off."""
    logs: Sequence[tuple[str, ...]] = location.settings.get("access_log") or (
        ("/var/log/nginx/access.log", "combined"),
    )
    return (
        []
        if any(log[0] == "off" for log in logs)
        else [log for log in logs if not log[0].startswith("syslog:")]
    )


# --- from directives


def configuration_of(directives: Sequence[Directive]) -> Configuration:
    """Return what directives mean; raise `ConfigurationError` for an invalid value."""
    return _Reader(directives).read()


class _Reader:
    def __init__(self, directives: Sequence[Directive]) -> None:
        self._directives = directives
        self._upstreams: dict[str, Upstream] = {}
        self._hosts: list[HostToResolve] = []
        self._unknown: dict[str, None] = {}
        self._certificates: list[Directive] = []
        self._maps: dict[str, tuple[str, tuple[tuple[str, ...], ...]]] = {}
        self._formats: dict[str, str] = {}
        self._defined: set[str] = set()
        """The variables that the configuration defines."""

    def read(self) -> Configuration:
        names = {directive.name for directive in self._directives}
        if "events" not in names:
            raise ConfigurationError('no "events" section in configuration')
        servers, stream_ports, warnings = list[Server](), list[int](), list[str]()
        error_log, level, pid, is_daemon = ERROR_LOG, "error", "/run/nginx.pid", True
        user = ""
        for directive in self._directives:
            match directive.name:
                case "error_log":
                    error_log = directive.arguments[0]
                    level = next(iter(directive.arguments[1:]), "error")
                case "pid":
                    pid = directive.arguments[0]
                case "http":
                    servers += self._http(directive)
                case "stream":
                    stream_ports += self._stream(directive)
                case "mail":
                    self._unknown["mail"] = None
                case "user":
                    user = directive.arguments[0]
                case "daemon":
                    is_daemon = directive.arguments[0] == "on"
                case _:
                    pass
        _check_servers(servers, warnings)
        return Configuration(
            servers=tuple(servers),
            upstreams=self._upstreams,
            maps=self._maps,
            formats=self._formats,
            error_log=error_log,
            level=level,
            pid=pid,
            user=user,
            is_daemon=is_daemon,
            hosts=tuple(self._hosts),
            certificates=tuple(self._certificates),
            not_simulated=tuple(self._unknown),
            ports={listen.port: listen.tls for server in servers for listen in server.listens},
            stream_ports=tuple(stream_ports),
            warnings=tuple(warnings),
        )

    def _http(self, directive: Directive) -> Iterator[Server]:
        block = directive.block or ()
        for each in block:
            if each.name == "upstream":
                self._upstream(each)
            elif each.name == "map":
                self._map(each)
            elif each.name == "log_format":
                texts = [text for text in each.arguments[1:] if not text.startswith("escape=")]
                self._formats[each.arguments[0]] = "".join(texts)
        outer = self._settings(block, {})
        for each in block:
            if each.name == "server":
                yield self._server(each, outer)

    def _stream(self, directive: Directive) -> Iterator[int]:
        self._unknown["stream"] = None
        for each in directive.block or ():
            for listen in each.block or () if each.name == "server" else ():
                if listen.name == "listen" and "udp" not in listen.arguments:
                    yield _port_of(listen, listen.arguments[0])

    def _upstream(self, directive: Directive) -> None:
        name = directive.arguments[0]
        if name in self._upstreams:
            raise directive.error(f'duplicate upstream "{name}"')
        servers = []
        for each in directive.block or ():
            if each.name == "server":
                address, *options = each.arguments
                for option in options:
                    is_known = option in ("down", "backup", "resolve", "drain") or "=" in option
                    if not is_known:
                        raise each.error(f'invalid parameter "{option}"')
                host, port = self._host_and_port(each, address, 80)
                servers.append(
                    UpstreamServer(
                        host=host, port=port, is_down="down" in options, is_backup="backup" in options
                    )
                )
            elif each.name in _WITHOUT_ANSWERS:
                self._unknown[each.name] = None
        if not servers:
            raise directive.error("no servers are inside upstream")
        self._upstreams[name] = Upstream(name=name, servers=tuple(servers))

    def _host_and_port(self, directive: Directive, text: str, default: int) -> tuple[str, int]:
        """Return the host and the port of an upstream; a name is looked up at the start."""
        if text.startswith("unix:"):
            self._unknown["unix:"] = None
            return text, 0
        host, port = _split_port(directive, text, default, "in upstream")
        if not host:
            raise directive.error(f'no host in upstream "{text}"')
        if not is_address(host.strip("[]")):
            self._hosts.append(HostToResolve(host=host, directive=directive))
        return host, port

    def _map(self, directive: Directive) -> None:
        source, variable = directive.arguments
        if not variable.startswith("$"):
            raise directive.error(f'invalid variable name "{variable}"')
        entries = tuple((each.name, *each.arguments) for each in directive.block or ())
        self._defined.add(variable[1:])
        self._maps[variable[1:]] = (source, entries)

    def _server(self, directive: Directive, outer: Mapping[str, Any]) -> Server:
        block = directive.block or ()
        listens = tuple(_listen_of(each) for each in block if each.name == "listen") or (Listen(),)
        if any(each.name == "ssl_certificate" for each in block) is False and any(
            listen.tls for listen in listens
        ):
            is_set = "ssl_certificate" in outer or any(each.name == "ssl_reject_handshake" for each in block)
            if not is_set:
                raise directive.error('no "ssl_certificate" is defined for the "listen ... ssl" directive')
        names, patterns = list[str](), list[ConfiguredPattern]()
        for each in block:
            for name in each.arguments if each.name == "server_name" else ():
                if name.startswith("~"):
                    patterns.append(compile_pattern(each, name[1:], ignores_case=True))
                else:
                    names.append(name.lower())
        root = self._location(block, outer, directive)
        return Server(
            listens=listens,
            names=tuple(names) or (() if patterns else ("",)),
            patterns=tuple(patterns),
            root=root,
        )

    def _settings(self, block: Sequence[Directive], outer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a block, with those of the outer one that it does not have itself."""
        settings = {name: value for name, value in outer.items() if name not in _NOT_INHERITED}
        own: dict[str, list[tuple[str, ...]]] = {}
        for each in block:
            if each.name in _WITHOUT_ANSWERS and each.arguments[:1] != ("off",):
                self._unknown[each.name] = None
            if each.name in ("ssl_certificate", "ssl_certificate_key") and not names_in(each.arguments[0]):
                self._certificates.append(each)
            if each.name in ("allow", "deny"):
                own.setdefault("access", []).append((each.name, *each.arguments))
            elif each.name in _LISTS:
                own.setdefault(each.name, []).append(each.arguments)
            elif each.name == "types":
                settings["types"] = {
                    extension: kind.name for kind in each.block or () for extension in kind.arguments
                }
            elif each.name in _INHERITED or each.name == "ssl_certificate":
                settings[each.name] = each.arguments
        return settings | {name: tuple(values) for name, values in own.items()}

    def _location(
        self,
        block: Sequence[Directive],
        outer: Mapping[str, Any],
        directive: Directive,
        head: Location | None = None,
        is_if: bool = False,  # noqa: FBT001, FBT002 - the kind of the block
    ) -> Location:
        settings = self._settings(block, outer)
        location = head or Location()
        proxy, handler, alias = location.proxy, location.handler, ""
        methods: tuple[str, ...] = ()
        for each in block:
            if each.name in _HANDLERS:
                handler = each.name
            if each.name == "proxy_pass":
                needs_no_uri = location.modifier in ("~", "~*", "@") or is_if
                proxy = self._proxy(each, needs_no_uri=needs_no_uri)
            elif each.name == "alias":
                alias = each.arguments[0]
            elif each.name == "limit_except":
                methods = tuple(method.upper() for method in each.arguments)
        inner = [self._inner_location(each, settings) for each in block if each.name == "location"]
        seen: set[tuple[bool, str]] = set()
        for each in [each for each in block if each.name == "location"]:
            modifier, path = _path_of(each)
            if (modifier == "=", path) in seen and modifier not in ("~", "~*"):
                raise each.error(f'duplicate location "{path}"')
            if modifier not in ("~", "~*"):
                seen.add((modifier == "=", path))
        return Location(
            modifier=location.modifier,
            path=location.path,
            pattern=location.pattern,
            settings=settings,
            operations=tuple(self._operations(block, settings, directive, location)),
            alias=alias,
            try_files=settings.get("try_files", ()),
            proxy=proxy,
            handler=handler,
            internal=any(each.name == "internal" for each in block),
            allowed_methods=methods,
            locations=tuple(inner),
        )

    def _inner_location(self, directive: Directive, outer: Mapping[str, Any]) -> Location:
        modifier, path = _path_of(directive)
        pattern = None
        if modifier in ("~", "~*"):
            pattern = compile_pattern(directive, path, ignores_case=modifier == "~*")
            if pattern.is_unsupported:
                self._unknown[f"location {modifier} {path}"] = None
        head = Location(modifier=modifier, path=path, pattern=pattern)
        return self._location(directive.block or (), outer, directive, head)

    def _operations(
        self,
        block: Sequence[Directive],
        settings: Mapping[str, Any],
        directive: Directive,
        location: Location,
    ) -> Iterator[Operation]:
        for each in block:
            if each.name not in _REWRITES:
                continue
            pattern, settings_of_if = None, None
            inner: tuple[Operation, ...] = ()
            arguments = each.arguments
            if each.name == "rewrite":
                pattern = compile_pattern(each, arguments[0])
                if len(arguments) == 3 and arguments[2] not in ("last", "break", "redirect", "permanent"):
                    raise each.error(f'invalid parameter "{arguments[2]}"')
            elif each.name == "return":
                _check_return(each)
            elif each.name == "set" and not arguments[0].startswith("$"):
                raise each.error(f'invalid variable name "{arguments[0]}"')
            elif each.name == "if":
                arguments, pattern = _condition(each)
                inner = tuple(self._operations(each.block or (), settings, directive, location))
                if location.path:
                    head = replace(location, operations=())
                    settings_of_if = self._location(each.block or (), settings, directive, head, is_if=True)
            yield Operation(
                name=each.name, arguments=arguments, pattern=pattern, inner=inner, location=settings_of_if
            )

    def _proxy(self, directive: Directive, *, needs_no_uri: bool) -> ProxyTarget:
        text = directive.arguments[0]
        scheme, separator, rest = text.partition("://")
        if text.startswith("$"):
            return ProxyTarget(text=text)
        if not separator or scheme not in ("http", "https"):
            raise directive.error("invalid URL prefix")
        at = next((index for index, char in enumerate(rest) if char in "/?"), len(rest))
        host, uri = rest[:at], rest[at:]
        if uri and needs_no_uri and "$" not in text:
            raise directive.error(
                '"proxy_pass" cannot have URI part in location given by regular expression, or inside named location, or inside "if" '
                'statement, or inside "limit_except" block'
            )
        target = ProxyTarget(scheme=scheme, host=host, uri=uri or None, text=text)
        if not host:
            raise directive.error('no host in upstream ""' if not uri else f'no host in upstream "{uri}"')
        if not names_in(text) and host not in self._upstreams:
            self._host_and_port(directive, host, 443 if scheme == "https" else 80)
        return target


def _path_of(directive: Directive) -> tuple[str, str]:
    arguments = directive.arguments
    if len(arguments) == 2:
        modifier, path = arguments
        if modifier not in ("=", "~", "~*", "^~"):
            raise directive.error(f'invalid location modifier "{modifier}"')
        return modifier, path
    text = arguments[0]
    if text.startswith("@"):
        return "@", text
    for modifier in ("^~", "~*", "~", "="):
        if text.startswith(modifier):
            return modifier, text.removeprefix(modifier)
    return "", text


def _listen_of(directive: Directive) -> Listen:
    text, *options = directive.arguments
    for option in options:
        if option not in _LISTEN_OPTIONS and not option.startswith(_LISTEN_VALUES):
            raise directive.error(f'invalid parameter "{option}"')
    if text.startswith("unix:"):
        return Listen(address=text, port=0)
    host, _, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not host and not port.isdecimal():
        host, port = port, ""
    address = host.strip("[]").replace("*", "") or "0.0.0.0"  # noqa: S104 - of a simulated server
    return Listen(
        address=address,
        port=_port_of(directive, port or "80", text),
        tls="ssl" in options,
        is_default="default_server" in options or "default" in options,
    )


def _port_of(directive: Directive, text: str, whole: str = "") -> int:
    number = text.rpartition(":")[2]
    if not number.isdecimal() or not 0 < int(number[:9]) <= _MAX_PORT:
        raise directive.error(f'invalid port in "{whole or text}" of the "{directive.name}" directive')
    return int(number)


def _split_port(directive: Directive, text: str, default: int, place: str) -> tuple[str, int]:
    host, separator, port = text.rpartition(":")
    if not separator or text.endswith("]"):
        return text, default
    if not port.isdecimal() or not 0 < int(port[:9]) <= _MAX_PORT:
        raise directive.error(f'invalid port {place} "{text}"')
    return host, int(port)


split_port: Final = _split_port


def _check_return(directive: Directive) -> None:
    first = directive.arguments[0]
    is_address_alone = first.startswith(("http://", "https://", "$scheme"))
    if len(directive.arguments) == 1 and is_address_alone:
        return
    if not first.isdecimal() or int(first[:4]) > 999:
        raise directive.error(f'invalid return code "{first}"')


def _condition(directive: Directive) -> tuple[tuple[str, ...], ConfiguredPattern | None]:
    """Return the operands of an `if`, with the pattern of a comparison."""
    words = list(directive.arguments)
    if not words[0].startswith("("):
        raise directive.error(f'invalid condition "{words[0]}"')
    words[0] = words[0][1:]
    words[-1] = words[-1].removesuffix(")")
    words = [word for word in words if word]
    if not words:
        raise directive.error('invalid condition ""')
    if len(words) == 3 and words[1] in ("~", "~*", "!~", "!~*"):
        return tuple(words), compile_pattern(directive, words[2], ignores_case=words[1].endswith("*"))
    is_test = len(words) == 2 and words[0] in ("-f", "!-f", "-d", "!-d", "-e", "!-e", "-x", "!-x")
    if len(words) == 1 or is_test or (len(words) >= 2 and words[1] in ("=", "!=")):
        return tuple(words), None
    raise directive.error(f'unexpected "{words[1]}" in condition')


def _check_servers(servers: Sequence[Server], warnings: list[str]) -> None:
    """Raise an error for two default servers of an address; warn about names that two servers of it have."""
    names: set[tuple[str, int, str]] = set()
    defaults: set[tuple[str, int]] = set()
    for server in servers:
        for listen in server.listens:
            at = (listen.address, listen.port)
            if listen.is_default and at in defaults:
                raise ConfigurationError(f"a duplicate default server for {listen.address}:{listen.port}")
            defaults |= {at} if listen.is_default else set()
            for name in server.names:
                if (*at, name) in names:
                    warnings.append(
                        f'conflicting server name "{name}" on {listen.address}:{listen.port}, ignored'
                    )
                names.add((*at, name))


def full_path(path: str, prefix: str = PREFIX) -> str:
    """Return the absolute path of a path in a configuration."""
    return join(prefix, path)
