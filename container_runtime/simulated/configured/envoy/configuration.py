"""The static configuration of Envoy: listeners with routes, clusters with endpoints, and the admin's address. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.regexp.captures import CapturingPattern, capturing_pattern
from mockube.apimachinery.regexp.errors import Problem, RegexpError
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError

_BOOTSTRAP: Final = frozenset(
    [
        "node",
        "node_context_params",
        "static_resources",
        "dynamic_resources",
        "cluster_manager",
        "hds_config",
        "flags_path",
        "stats_sinks",
        "deferred_stat_options",
        "stats_config",
        "stats_flush_interval",
        "stats_flush_on_admin",
        "stats_eviction_interval",
        "watchdog",
        "watchdogs",
        "tracing",
        "layered_runtime",
        "admin",
        "overload_manager",
        "enable_dispatcher_stats",
        "header_prefix",
        "stats_server_version_override",
        "use_tcp_for_dns_lookups",
        "dns_resolution_config",
        "typed_dns_resolver_config",
        "bootstrap_extensions",
        "fatal_actions",
        "config_sources",
        "default_config_source",
        "default_socket_interface",
        "certificate_provider_instances",
        "inline_headers",
        "perf_tracing_file_path",
        "default_regex_engine",
        "xds_delegate_extension",
        "xds_config_tracker_extension",
        "listener_manager",
        "application_log_config",
        "grpc_async_client_manager_config",
        "memory_allocator_manager",
    ]
)
_RESOURCES: Final = frozenset({"listeners", "clusters", "secrets"})
_REMOVED: Final = {"cluster": "hosts", "filter": "config", "chain": "tls_context"}
"""Fields of the second version of the API, which still appear in old examples."""
_KNOWN_DISCOVERY: Final = ("STATIC", "STRICT_DNS", "LOGICAL_DNS")
_MANAGER: Final = "HttpConnectionManager"
_MAX: Final = 10_000


class EnvoyConfigurationError(Exception):
    """The configuration is invalid; the message is that of Envoy."""


class ClusterEndpoint(Struct, frozen=True, kw_only=True):
    host: str
    port: int


class Cluster(Struct, frozen=True, kw_only=True):
    name: str
    endpoints: tuple[ClusterEndpoint, ...] = ()
    looks_up: bool = False
    """Whether its endpoints have names."""
    tls: bool = False


class EnvoyRoute(Struct, frozen=True, kw_only=True):
    match: Mapping[str, Any] = field(default_factory=dict)
    pattern: CapturingPattern | None = None
    action: Mapping[str, Any] = field(default_factory=dict)
    kind: str = ""
    """route, redirect or direct_response."""
    headers: tuple[tuple[str, str], ...] = ()


class VirtualHost(Struct, frozen=True, kw_only=True):
    name: str
    domains: tuple[str, ...]
    routes: tuple[EnvoyRoute, ...] = ()


_PROBLEMS: Final[Mapping[Problem, str]] = {
    Problem.MISSING_BRACKET: "missing ]",
    Problem.MISSING_PARENTHESIS: "missing )",
    Problem.UNEXPECTED_PARENTHESIS: "unexpected )",
    Problem.TRAILING_BACKSLASH: "trailing \\",
    Problem.MISSING_ARGUMENT: "no argument for repetition operator",
    Problem.REPEAT_COUNT: "invalid repetition size",
    Problem.REPEAT_OPERATOR: "bad repetition operator",
    Problem.PERL_OPERATOR: "invalid perl operator",
    Problem.NAMED_CAPTURE: "invalid named capture group",
    Problem.TOO_LARGE: "pattern too large - compile failed",
}
"""What RE2 says of the mistakes in patterns, where Go has other words."""


class Listener(Struct, frozen=True, kw_only=True):
    name: str
    port: int
    tls: bool = False
    hosts: tuple[VirtualHost, ...] = ()
    unknown: str = ""
    """What its connections go to, if that is not simulated."""
    logs: bool = False


class EnvoyConfiguration(Struct, frozen=True, kw_only=True):
    listeners: Mapping[int, Listener] = field(default_factory=dict)
    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    admin_port: int = 0
    not_simulated: tuple[str, ...] = ()


def configuration_of(data: bytes) -> EnvoyConfiguration:
    """Return what a file means; raise `EnvoyConfigurationError` for an invalid one."""
    try:
        tree = load(data).tree
    except YamlError as error:
        text = str(error).removeprefix("error converting YAML to JSON: ")
        raise EnvoyConfigurationError(f"Unable to convert YAML as JSON: {text}") from error
    if not isinstance(tree, dict):
        raise EnvoyConfigurationError(
            f"Unable to convert YAML as JSON: {data.decode('utf-8', 'replace')[:2000].strip()}"
        )
    return _Reader(tree).read()


class _Reader:
    def __init__(self, tree: Mapping[str, Any]) -> None:
        self._tree = tree
        self._unknown: dict[str, None] = {}

    def read(self) -> EnvoyConfiguration:
        _check_fields(self._tree, _BOOTSTRAP, "")
        resources = _mapping(self._tree.get("static_resources"), "static_resources")
        _check_fields(resources, _RESOURCES, "static_resources")
        for name in ("dynamic_resources", "layered_runtime", "hds_config"):
            if self._tree.get(name):
                self._unknown[f"{name} of envoy"] = None
        clusters = {}
        for index, each in enumerate(_items(resources.get("clusters"), "static_resources.clusters")):
            cluster = self._cluster(each, f"static_resources.clusters[{index}]")
            clusters[cluster.name] = cluster
        listeners = {}
        for index, each in enumerate(_items(resources.get("listeners"), "static_resources.listeners")):
            listener = self._listener(each, f"static_resources.listeners[{index}]")
            listeners[listener.port] = listener
        for listener in listeners.values():
            self._check_clusters(listener, clusters)
        admin = _socket(_mapping(self._tree.get("admin"), "admin").get("address"), "admin.address")
        return EnvoyConfiguration(
            listeners=listeners,
            clusters=clusters,
            admin_port=admin.port if admin is not None else 0,
            not_simulated=tuple(self._unknown),
        )

    def _cluster(self, tree: Mapping[str, Any], path: str) -> Cluster:
        _check_removed(tree, "cluster", path)
        discovery = str(tree.get("type") or "STATIC")
        if discovery not in _KNOWN_DISCOVERY or "cluster_type" in tree:
            self._unknown[f"the cluster type {discovery} of envoy"] = None
        endpoints = []
        assignment = _mapping(tree.get("load_assignment"), f"{path}.load_assignment")
        for group in _items(assignment.get("endpoints"), f"{path}.load_assignment.endpoints"):
            for each in _items(group.get("lb_endpoints"), f"{path}.load_assignment.endpoints.lb_endpoints"):
                endpoint = _mapping(each.get("endpoint"), f"{path}.endpoint")
                address = _socket(endpoint.get("address"), f"{path}.endpoint.address")
                endpoints += [address] if address is not None else []
        return Cluster(
            name=str(tree.get("name") or ""),
            endpoints=tuple(endpoints),
            looks_up=discovery in _KNOWN_DISCOVERY[1:],
            tls="transport_socket" in tree,
        )

    def _listener(self, tree: Mapping[str, Any], path: str) -> Listener:
        address = _socket(tree.get("address"), f"{path}.address")
        name = str(tree.get("name") or "")
        port = address.port if address is not None else 0
        tls = False
        for chain in _items(tree.get("filter_chains"), f"{path}.filter_chains"):
            _check_removed(chain, "chain", f"{path}.filter_chains")
            tls = tls or "transport_socket" in chain
            for each in _items(chain.get("filters"), f"{path}.filter_chains.filters"):
                _check_removed(each, "filter", f"{path}.filter_chains.filters")
                typed = _mapping(each.get("typed_config"), f"{path}.typed_config")
                if str(typed.get("@type") or "").endswith(_MANAGER):
                    return self._manager(typed, name, port, tls, path)
                unknown = f"the filter {each.get('name')} of envoy"
                return Listener(name=name, port=port, tls=tls, unknown=unknown)
        return Listener(name=name, port=port, unknown="a listener of envoy without filters")

    def _manager(self, typed: Mapping[str, Any], name: str, port: int, tls: bool, path: str) -> Listener:  # noqa: FBT001 - a value of the listener
        if "rds" in typed or "scoped_routes" in typed:
            return Listener(name=name, port=port, tls=tls, unknown="rds of envoy")
        for each in _items(typed.get("http_filters"), f"{path}.http_filters"):
            kind = str(each.get("name") or "")
            if not kind.endswith(
                ("router", "health_check", "grpc_web", "cors", "grpc_stats", "compressor", "buffer")
            ):
                self._unknown[f"the filter {kind} of envoy"] = None
        config = _mapping(typed.get("route_config"), f"{path}.route_config")
        hosts = tuple(
            VirtualHost(
                name=str(each.get("name") or ""),
                domains=tuple(map(str, each.get("domains") or ())),
                routes=tuple(self._routes(each, path)),
            )
            for each in _items(config.get("virtual_hosts"), f"{path}.route_config.virtual_hosts")
        )
        logs = any(
            "stdout" in str(log).lower() for log in _items(typed.get("access_log"), f"{path}.access_log")
        )
        return Listener(name=name, port=port, tls=tls, hosts=hosts, logs=logs)

    def _routes(self, host: Mapping[str, Any], path: str) -> Iterator[EnvoyRoute]:
        for each in _items(host.get("routes"), f"{path}.routes"):
            match = _mapping(each.get("match"), f"{path}.match")
            pattern = pattern_of(match["safe_regex"], f"{path}.safe_regex") if "safe_regex" in match else None
            kind = next((name for name in ("route", "redirect", "direct_response") if name in each), "")
            if not kind:
                self._unknown["a route of envoy without an action"] = None
            added = [
                _mapping(entry.get("header"), path)
                for entry in _items(
                    each.get("response_headers_to_add") or host.get("response_headers_to_add"), path
                )
            ]
            action = _mapping(each.get(kind), f"{path}.{kind}") if kind else {}
            _check_patterns(match, action, path)
            yield EnvoyRoute(
                match=match,
                pattern=pattern,
                action=action,
                kind=kind,
                headers=tuple((str(header.get("key")), str(header.get("value"))) for header in added),
            )

    def _check_clusters(self, listener: Listener, clusters: Mapping[str, Cluster]) -> None:
        for host in listener.hosts:
            for route in host.routes:
                name = route.action.get("cluster") if route.kind == "route" else None
                if name is not None and name not in clusters and not self._tree.get("dynamic_resources"):
                    raise EnvoyConfigurationError(f"route: unknown cluster '{name}'")


def _check_fields(tree: Mapping[str, Any], known: frozenset[str], path: str) -> None:
    for name in tree:
        if name not in known:
            raise _unknown_field(path, name)


def _check_removed(tree: Mapping[str, Any], kind: str, path: str) -> None:
    if _REMOVED[kind] in tree:
        raise _unknown_field(path, _REMOVED[kind])


def _check_patterns(match: Mapping[str, Any], action: Mapping[str, Any], path: str) -> None:
    for header in _items(match.get("headers"), f"{path}.headers"):
        text = _mapping(header.get("string_match"), f"{path}.string_match")
        if regex := header.get("safe_regex_match", text.get("safe_regex")):
            pattern_of(regex, f"{path}.safe_regex")
    if rewrite := _mapping(action.get("regex_rewrite"), f"{path}.regex_rewrite"):
        pattern_of(rewrite.get("pattern"), f"{path}.regex_rewrite.pattern")


def pattern_of(matcher: Any, path: str) -> CapturingPattern:
    """Return the pattern of a RegexMatcher; raise `EnvoyConfigurationError` with the words of RE2 for an invalid one."""
    return _compiled(str(_mapping(matcher, path).get("regex") or ""))


@memoize(1024, max_length=300)
def _compiled(regex: str) -> CapturingPattern:
    try:
        return capturing_pattern(regex)
    except RegexpError as error:
        message = _PROBLEMS.get(error.problem, error.problem.value)
        raise EnvoyConfigurationError(
            f"{message}: {error.fragment}" if error.fragment else message
        ) from error


def _unknown_field(path: str, name: str) -> EnvoyConfigurationError:
    place = f"({path}) " if path else ""
    return EnvoyConfigurationError(
        f"Protobuf message (type envoy.config.bootstrap.v3.Bootstrap reason INVALID_ARGUMENT:{place}{name}: Cannot find field.) "
        "has unknown fields"
    )


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise EnvoyConfigurationError(
            f"Unable to parse JSON as proto (INVALID_ARGUMENT:({path}): invalid value {value!r} for type Message)"
        )
    return value


def _items(value: Any, path: str) -> Sequence[Mapping[str, Any]]:
    """Return the messages of a list; one message counts as a list of it."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    return [_mapping(each, path) for each in values[:_MAX]]


def _socket(address: Any, path: str) -> ClusterEndpoint | None:
    tree = _mapping(_mapping(address, path).get("socket_address"), f"{path}.socket_address")
    port = tree.get("port_value")
    if not tree:
        return None
    if not isinstance(port, int | str) or not str(port).isdecimal() or not 0 <= int(str(port)[:6]) <= 65535:
        raise EnvoyConfigurationError(
            f"Unable to parse JSON as proto (INVALID_ARGUMENT:({path}.socket_address.port_value): invalid value {port!r} for type uint32)"
        )
    return ClusterEndpoint(host=str(tree.get("address") or ""), port=int(port))
