"""Serve log, exec, attach, portforward and proxy, which connect to a kubelet or a pod, independent of the transport."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import quote

from msgspec.structs import replace

from mockube.apimachinery import gotext, status
from mockube.apimachinery.status import ApiError, BadRequest
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import AuthorizerFailed, Decision
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, RequestContext
from mockube.apiserver.registry.subresources.locations import Location, Locator, log_query

from .request import Request
from .response import Response

_UPGRADED: Final = frozenset({"GET", "POST"})
CONNECT_METHODS: Final[Mapping[str, frozenset[str]]] = {
    "attach": _UPGRADED,
    "exec": _UPGRADED,
    "log": frozenset({"GET"}),
    "portforward": _UPGRADED,
    "proxy": frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}),
}
"""The allowed methods, by subresource."""
_STREAMS: Final = ("stdin", "stdout", "stderr", "tty")
_QUERIES: Final = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
"""By stream, the name of its query parameter at the kubelet."""
_PATH: Final = "/:@!$&'()*+,;=~-._"
"""Characters besides letters and digits that are not escaped in a path."""


class Proxy(Protocol):
    """Proxies requests; implemented by the HTTP layer."""

    async def stream(self, request: Request, location: Location, name: str, /) -> Response: ...

    async def forward(
        self, request: Request, location: Location, /, *, upgrade_required: bool
    ) -> Response: ...

    def end_all(self) -> None: ...


class ConnectHandler:
    def __init__(
        self,
        registry: Registry,
        proxy: Proxy,
        addresses: Sequence[str],
        *,
        family: str,
        websockets_need_create: bool,
    ) -> None:
        self._registry = registry
        self._proxy = proxy
        self._websockets_need_create = websockets_need_create
        self._locator = Locator(registry, addresses, family)

    async def serve(self, request: Request, context: RequestContext) -> Response:
        name = request.info.subresource
        if name == "log":
            return await self._log(request, context)
        if request.query.get("dryRun"):
            raise BadRequest("dryRun is not supported")
        if name == "proxy":
            await self._admit(context, {"path": _proxy_path(request, context)})
            return await self._proxy_request(request, context)
        ports = _ports(context) if name == "portforward" else []
        option_fields = (
            {"ports": ports} if ports else {} if name == "portforward" else _streams(context, name)
        )
        options = await self._admit(context, option_fields)
        await self._check_create(request, context)
        query = _port_query(options) if name == "portforward" else _stream_query(options)
        path = "portForward" if name == "portforward" else name
        location = await self._locator.kubelet(context, path, query)
        if location is None:
            raise BadRequest(f"pod {context.name} does not have a host assigned")
        return await self._proxy.forward(request, location, upgrade_required=True)

    async def _log(self, request: Request, context: RequestContext) -> Response:
        query = log_query(context)
        location = await self._locator.kubelet(context, "containerLogs", query)
        if location is None:
            return Response(204, content_type="")
        if context.flag("insecureSkipTLSVerifyBackend"):
            location = replace(location, skips_verification=True)
        return await self._proxy.stream(request, location, context.name)

    async def _admit(self, context: RequestContext, option_fields: Tree) -> Tree:
        """Return the options after admission, or raise its refusal."""
        assert context.subresource is not None
        kind = {"kind": context.subresource.kind, "apiVersion": context.resource.api_version}
        attributes = AdmissionAttributes(
            operation=Operation.CONNECT, context=context, name=context.name, object={**kind, **option_fields}
        )
        await self._registry.admission.mutate(self._registry, attributes)
        await self._registry.admission.validate(self._registry, attributes)
        return attributes.object or {}

    async def _check_create(self, request: Request, context: RequestContext) -> None:
        """Require the verb create for a WebSocket, which begins with a GET, as for other protocols."""
        if context.verb == "create" or not self._websockets_need_create:
            return
        try:
            attributes = replace(request.attributes(), verb="create")
            decision, reason = await self._registry.authorization.authorize(attributes)
        except AuthorizerFailed as error:
            raise ApiError(str(error)) from error
        if decision is not Decision.ALLOW:
            raise status.forbidden(context.resource.group_resource, context.name, reason)

    async def _proxy_request(self, request: Request, context: RequestContext) -> Response:
        locate = {"nodes": self._locator.node, "pods": self._locator.pod, "services": self._locator.service}
        location = await locate[context.resource.name](context)
        path = request.path.split(f"/{context.name}/proxy", 1)[1]
        if not path and request.method in ("GET", "HEAD"):
            query = f"?{request.query_string}" if request.query_string else ""
            return Response(301, headers={"Location": f"{request.path}/{query}"})
        location = replace(location, path=quote(path, safe=_PATH), query=request.query_string)
        return await self._proxy.forward(request, location, upgrade_required=False)


def _proxy_path(request: Request, context: RequestContext) -> str:
    """Return the path after `proxy`."""
    rest = request.path.split(f"/{context.name}/proxy", 1)[1]
    return rest or ("/" if request.path.endswith("/") else "")


def _streams(context: RequestContext, subresource: str) -> Tree:
    """Return the options of the streams, the container and the command."""
    options: Tree = {name: True for name in _STREAMS if context.flag(name)}
    if container := context.parameter("container"):
        options["container"] = container
    commands = context.query.get("command", ()) if subresource == "exec" else ()
    return {**options, "command": list(commands)} if commands else options


def _stream_query(options: Tree) -> list[tuple[str, str]]:
    """Return the query of a kubelet for the streams."""
    chosen = [(_QUERIES[name], "1") for name in _STREAMS if options.get(name)]
    commands = options.get("command") or ()
    return sorted([*chosen, *(("command", command) for command in commands)], key=lambda pair: pair[0])


def _ports(context: RequestContext) -> list[int]:
    ports = []
    for text in context.query.get("ports", ()):
        for part in text.split(","):
            try:
                ports.append(gotext.parse_uint(part, bits=16))
            except gotext.NumberError as error:
                raise BadRequest(f"cannot convert to []int32: {error}") from error
    return ports


def _port_query(options: Tree) -> list[tuple[str, str]]:
    ports = options.get("ports")
    return [("port", ",".join(map(str, ports)))] if ports else []
