"""What Envoy answers to a request: by the routes of its listener, or as its admin. Pure."""

from collections.abc import Generator, Mapping
from typing import Any, Final

from mockube.container_runtime.simulated.configured.contract import (
    Answering,
    FileReader,
    ProxyCall,
    ProxyReply,
    Request,
    Response,
)
from mockube.container_runtime.simulated.configured.patterns import with_groups

from .configuration import Cluster, EnvoyConfiguration, EnvoyRoute, Listener, VirtualHost, pattern_of

_REDIRECTS: Final = {"FOUND": 302, "SEE_OTHER": 303, "TEMPORARY_REDIRECT": 307, "PERMANENT_REDIRECT": 308}
_Routing = Generator[ProxyCall, ProxyReply, tuple[Response, str]]
_RESET: Final = "upstream connect error or disconnect/reset before headers. "


def answer(configuration: EnvoyConfiguration, request: Request, files: FileReader) -> Answering:  # noqa: ARG001 - the contract
    """Return the response to a request, and what is logged of it."""
    if request.port == configuration.admin_port:
        return _admin(configuration, request)
    listener = configuration.listeners[request.port]
    response, upstream = yield from _route(configuration, listener, request)
    response.server = "envoy"
    if listener.logs:
        length = len(response.body)
        agent, host = request.headers.get("user-agent", "-"), request.headers.get("host", "-")
        line = (
            f'[{request.now:%Y-%m-%dT%H:%M:%S}.{request.now.microsecond // 1000:03}Z] "{request.method} {request.target[:2000]} HTTP/1.1" '
            f'{response.status} - {len(request.body)} {length} 0 - "-" "{agent}" "-" "{host}" "{upstream}"'
        )
        response.logs.append(("/dev/stdout", line))
    return response


def _route(configuration: EnvoyConfiguration, listener: Listener, request: Request) -> _Routing:
    """Return the response, and the address of the server that has sent it."""
    path, _, _ = request.target.partition("?")
    host = _host_for(listener, request)
    route = (
        next((each for each in host.routes if _matches(each, request, path)), None)
        if host is not None
        else None
    )
    if route is None:
        return Response(status=404, content_type=""), "-"
    match route.kind:
        case "direct_response":
            body = (route.action.get("body") or {}).get("inline_string") or ""
            status = route.action.get("status")
            response = Response(
                status=status if isinstance(status, int) else 200,
                content_type="text/plain",
                body=str(body).encode(),
                headers=[*route.headers],
            )
            return response, "-"
        case "redirect":
            return _redirect(route, request), "-"
        case "route":
            return (yield from _forward(configuration, route, request, path))
        case _:
            return Response(status=404, content_type=""), "-"


def _host_for(listener: Listener, request: Request) -> VirtualHost | None:
    name, named = request.host.lower(), request.headers.get("host", "").lower()
    best: tuple[int, VirtualHost] | None = None
    for host in listener.hosts:
        for domain in map(str.lower, host.domains):
            if domain in (name, named):
                return host
            is_suffix = domain.startswith("*") and len(domain) > 1 and name.endswith(domain[1:])
            is_prefix = domain.endswith("*") and len(domain) > 1 and name.startswith(domain[:-1])
            rank = (
                1000 + len(domain) if is_suffix else len(domain) if is_prefix else 0 if domain == "*" else -1
            )
            if rank >= 0 and (best is None or rank > best[0]):
                best = (rank, host)
    return best[1] if best is not None else None


def _matches(route: EnvoyRoute, request: Request, path: str) -> bool:
    match = route.match
    ignores_case = match.get("case_sensitive") is False
    fold = str.lower if ignores_case else str
    if "prefix" in match and not fold(path).startswith(fold(str(match["prefix"]))):
        return False
    if "path" in match and fold(path) != fold(str(match["path"])):
        return False
    separated = match.get("path_separated_prefix")
    if separated is not None and path != separated and not path.startswith(f"{separated}/"):
        return False
    if route.pattern is not None and route.pattern.fullmatch(path) is None:
        return False
    return all(_has_header(request, header) for header in match.get("headers") or ())


def _has_header(request: Request, header: Mapping[str, Any]) -> bool:
    name = str(header.get("name") or "").lower()
    known = {":method": request.method, ":path": request.target, ":authority": request.headers.get("host")}
    value = known.get(name, request.headers.get(name))
    text = header.get("string_match") or {}
    expected = header.get("exact_match", text.get("exact"))
    prefix = header.get("prefix_match", text.get("prefix"))
    holds = value is not None
    if expected is not None:
        holds = value == expected
    elif prefix is not None:
        holds = value is not None and value.startswith(str(prefix))
    elif regex := header.get("safe_regex_match", text.get("safe_regex")):
        holds = value is not None and pattern_of(regex, "").fullmatch(value) is not None
    elif "present_match" in header:
        holds = (value is not None) is bool(header["present_match"])
    return holds is not bool(header.get("invert_match"))


def _redirect(route: EnvoyRoute, request: Request) -> Response:
    action = route.action
    scheme = (
        "https"
        if action.get("https_redirect")
        else str(action.get("scheme_redirect") or ("https" if request.tls else "http"))
    )
    host = str(action.get("host_redirect") or request.headers.get("host", ""))
    if action.get("port_redirect"):
        host = f"{host.partition(':')[0]}:{action['port_redirect']}"
    path, _, query = request.target.partition("?")
    path = str(action.get("path_redirect") or path)
    if "prefix_rewrite" in action:
        path = str(action["prefix_rewrite"]) + path[len(str(route.match.get("prefix") or "")) :]
    rest = f"?{query}" if query and not action.get("strip_query") else ""
    status = _REDIRECTS.get(str(action.get("response_code")), 301)
    return Response(status=status, content_type="", location=f"{scheme}://{host}{path}{rest}")


def _forward(configuration: EnvoyConfiguration, route: EnvoyRoute, request: Request, path: str) -> _Routing:
    action = route.action
    cluster = configuration.clusters.get(_cluster_name(action, request))
    if cluster is None:
        return Response(status=503, content_type=""), "-"
    if not cluster.endpoints:
        return Response(status=503, content_type="text/plain", body=b"no healthy upstream"), "-"
    call = _call(route, cluster, request, path)
    reply = yield call
    upstream = f"{call.host}:{call.port}"
    if reply.status:
        return _passed(reply, route), upstream
    if reply.has_timed_out:
        return Response(status=504, content_type="text/plain", body=b"upstream request timeout"), upstream
    if "resolved" in reply.problem:
        return Response(status=503, content_type="text/plain", body=b"no healthy upstream"), "-"
    reason = "reset reason: remote connection failure, transport failure reason: delayed connect error: Connection refused"
    return Response(status=503, content_type="text/plain", body=f"{_RESET}{reason}".encode()), upstream


def _cluster_name(action: Mapping[str, Any], request: Request) -> str:
    if "cluster_header" in action:
        return request.headers.get(str(action["cluster_header"]).lower(), "")
    weighted = (action.get("weighted_clusters") or {}).get("clusters") or ()
    names = [
        str(each.get("name")) for each in weighted for _ in range(min(int(each.get("weight") or 1), 100))
    ]
    return names[request.number * 7 % len(names)] if names else str(action.get("cluster") or "")


def _call(route: EnvoyRoute, cluster: Cluster, request: Request, path: str) -> ProxyCall:
    action, endpoint = route.action, cluster.endpoints[(request.number - 1) % len(cluster.endpoints)]
    target = request.target
    if "prefix_rewrite" in action:
        prefix = str(
            route.match.get("prefix")
            or route.match.get("path")
            or route.match.get("path_separated_prefix")
            or ""
        )
        target = str(action["prefix_rewrite"]) + target[len(prefix) :]
    elif rewrite := action.get("regex_rewrite"):
        substitution = str(rewrite.get("substitution") or "")
        new = pattern_of(rewrite.get("pattern"), "").replace(
            path, lambda groups: with_groups(substitution, groups)
        )
        target = target if new is None else new + target[len(path) :]
    dropped = ("connection", "content-length", "transfer-encoding")
    headers = {name: value for name, value in request.headers.items() if name not in dropped}
    if "host_rewrite_literal" in action:
        headers["host"] = str(action["host_rewrite_literal"])
    headers |= {
        "x-forwarded-proto": "https" if request.tls else "http",
        "x-envoy-expected-rq-timeout-ms": "15000",
    }
    return ProxyCall(
        host=endpoint.host,
        port=endpoint.port,
        method=request.method,
        path=target,
        headers=tuple(headers.items()),
        tls=cluster.tls,
        body=request.body,
        needs_resolver=True,
        uses_search=True,
    )


def _passed(reply: ProxyReply, route: EnvoyRoute) -> Response:
    headers = {name.lower(): (name, value) for name, value in reply.headers}
    for name in ("connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"):
        headers.pop(name, None)
    return Response(
        status=reply.status,
        content_type=headers.pop("content-type", ("", ""))[1],
        location=headers.pop("location", ("", ""))[1],
        headers=[*headers.values(), ("x-envoy-upstream-service-time", "0"), *route.headers],
        body=reply.body,
    )


# --- the admin


def _admin(configuration: EnvoyConfiguration, request: Request) -> Response:
    path = request.target.partition("?")[0]
    texts = {
        "/ready": "LIVE\n",
        "/healthcheck/ok": "OK\n",
        "/server_info": '{\n "state": "LIVE",\n "version": "envoy"\n}\n',
        "/clusters": _clusters(configuration),
        "/listeners": "".join(
            f"{each.name}::0.0.0.0:{port}\n" for port, each in configuration.listeners.items()
        ),
        "/stats": f"cluster_manager.active_clusters: {len(configuration.clusters)}\nlistener_manager.total_listeners_active: "
        f"{len(configuration.listeners)}\nserver.live: 1\nserver.state: 0\n",
        "/stats/prometheus": "# TYPE envoy_server_live gauge\nenvoy_server_live{} 1\n# TYPE envoy_cluster_manager_active_clusters gauge\n"
        f"envoy_cluster_manager_active_clusters{{}} {len(configuration.clusters)}\n",
        "/": "<html><head><title>Envoy Admin</title></head><body></body></html>\n",
    }
    text = texts.get(path)
    if text is None:
        return Response(
            status=404,
            content_type="text/plain; charset=UTF-8",
            body=b"invalid path. admin commands are:\n",
            server="envoy",
        )
    kind = (
        "application/json"
        if path == "/server_info"
        else "text/html"
        if path == "/"
        else "text/plain; charset=UTF-8"
    )
    return Response(status=200, content_type=kind, body=text.encode(), server="envoy")


def _clusters(configuration: EnvoyConfiguration) -> str:
    lines = []
    for cluster in configuration.clusters.values():
        lines.append(f"{cluster.name}::observability_name::{cluster.name}")
        lines += [
            f"{cluster.name}::{each.host}:{each.port}::health_flags::healthy" for each in cluster.endpoints
        ]
    return "".join(f"{line}\n" for line in lines)
