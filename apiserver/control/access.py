"""What authorization saw of a recorded request, and the rights that the request needed."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery.groups import CONTROL, NAMESPACES, GroupResource
from mockube.apiserver.authz.chain import Attributes, AuthorizerFailed, Decision
from mockube.apiserver.authz.rbac.policy import RBACPolicy
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import RequestContext
from mockube.apiserver.request.access import requested_impersonation
from mockube.apiserver.request.impersonation import required_rights
from mockube.apiserver.request.request import Request
from mockube.apiserver.request_info import CONNECT_SUBRESOURCES, RequestInfo
from mockube.apiserver.storage.journal import MAX_TEXT
from mockube.apiserver.user import User

DECISION_SECONDS: Final = 60.0
"""How long a watch relies on a decision: webhooks of authorization do not report that they would decide otherwise."""
MAX_IMPERSONATION_RIGHTS: Final = 50
"""The rights of one impersonation that are kept: a client chooses how many groups and extras it sends."""
_NO_RESOURCE: Final = GroupResource("", "")
_ALL_RESOURCES: Final = GroupResource("*", "*")
_CREATED: Final = 201
_UPDATES: Final = frozenset({"update", "patch"})
_STREAMS: Final = frozenset({"attach", "exec", "portforward"})


class Right(NamedTuple):
    """One verb on one resource or path, as a rule of RBAC has it."""

    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource, as pods/log; "" for a path."""
    name: str = ""
    """The name of the object; "" for every object."""
    path: str = ""


class ScopedRight(NamedTuple):
    """A right in a namespace; "" for the cluster."""

    namespace: str
    right: Right


class Access(NamedTuple):
    """What authorization saw of a request, besides its attributes."""

    is_allowed: bool | None
    """The decision; None for a request that was not authorized, as one without credentials."""
    name: str
    """The name of the object, also if a list or watch selects one."""
    groups: Sequence[str]
    """The groups of its user, unless they are very long."""
    requestor: str
    """The user that impersonated its user; "" without impersonation."""
    impersonation: Sequence[ScopedRight]
    """The rights that this user needed for it."""


async def decide(cluster: Registry, attributes: Attributes) -> bool | None:
    """Return whether a request is allowed; None if no authorizer can decide."""
    try:
        decision, _ = await cluster.authorization.authorize(attributes)
    except AuthorizerFailed:
        return None
    return decision is Decision.ALLOW


async def is_allowed(  # noqa: PLR0913 - each is an attribute
    cluster: Registry,
    user: User,
    verb: str,
    resource: GroupResource,
    namespace: str = "",
    name: str = "",
    *,
    subresource: str = "",
) -> bool:
    """Return whether a user may do something; False if the resource is not served any more, or if no authorizer can decide."""
    row = cluster.rows.get(resource)
    if row is None:
        return False
    return bool(await decide(cluster, Attributes.of_row(user, verb, row, namespace, name, subresource)))


class UserRights:
    """What the user of one request may do. A decision about a kind in a namespace holds until roles change, for a minute at most."""

    def __init__(self, cluster: Registry, policy: RBACPolicy, context: RequestContext) -> None:
        self._cluster, self._user = cluster, context.user
        self._policy, self._clock = policy, cluster.clock.real
        self._decisions: dict[tuple[str, GroupResource, str, str, str], bool] = {}
        self._generation, self._until = policy.generation, 0.0

    async def may(self, verb: str, resource: GroupResource, namespace: str) -> bool:
        """Return whether the user may do something with objects of a resource that is served."""
        return resource in self._cluster.rows and await self._may(verb, resource, namespace)

    async def may_see(self, info: RequestInfo, users: Collection[str]) -> bool:
        """Return whether the user may see a request of one of these users: its own one, and those for what it may list, or read.

        The selector, the body and the message of a request for the group of control name objects of any kind: it is for whoever may
        list everything. A connection to a node, a pod or a Service has a command or a path there: it is for whoever may make it.
        """
        if self._user.name in users:
            return True
        resource = GroupResource(info.group, info.resource)
        if not info.is_resource:
            return await self._may("get", _NO_RESOURCE, path=info.path)
        if info.group == CONTROL:
            return await self.may_list_all("")
        if info.subresource in CONNECT_SUBRESOURCES and not await self._may(
            info.verb, resource, info.namespace, subresource=info.subresource
        ):
            return False
        return await self._may("list", resource, info.namespace)

    async def may_list_all(self, namespace: str) -> bool:
        """Return whether the user may list every resource in a namespace; in all of them, and those without one, for ""."""
        return await self._may("list", _ALL_RESOURCES, namespace)

    async def _may(
        self,
        verb: str,
        resource: GroupResource,
        namespace: str = "",
        *,
        subresource: str = "",
        path: str = "",
    ) -> bool:
        key = verb, resource, namespace, subresource, path
        self._forget_old()
        if key not in self._decisions:
            row = self._cluster.rows.get(resource)
            attributes = Attributes(
                user=self._user,
                verb=verb,
                path=path,
                group=resource.group,
                version="" if row is None else row.version,
                resource=resource.resource,
                subresource=subresource,
                namespace=namespace,
            )
            self._decisions[key] = bool(await decide(self._cluster, attributes))
        return self._decisions[key]

    def _forget_old(self) -> None:
        now, generation = self._clock.monotonic(), self._policy.generation
        if generation != self._generation or now >= self._until:
            self._decisions = {}
            self._generation, self._until = generation, now + DECISION_SECONDS


def access_of(request: Request) -> Access:
    decision, groups = request.decision, request.user.groups
    is_allowed = None if decision is None else decision[0] is Decision.ALLOW
    if sum(map(len, groups)) > MAX_TEXT:
        groups = ()
    if request.impersonated is None:
        return Access(is_allowed, request.name[:MAX_TEXT], groups, "", ())
    requestor = request.authenticated.name[:MAX_TEXT]
    return Access(is_allowed, request.name[:MAX_TEXT], groups, requestor, _impersonation_rights(request))


def _impersonation_rights(request: Request) -> Sequence[ScopedRight]:
    requested, impersonated = requested_impersonation(request), request.impersonated
    assert requested is not None
    assert impersonated is not None
    attributes = replace(request.attributes(), user=request.authenticated)
    rights = required_rights(attributes, requested, impersonated.constraint)
    return [_right_of_attributes(each) for each in rights[:MAX_IMPERSONATION_RIGHTS]]


def _right_of_attributes(attributes: Attributes) -> ScopedRight:
    if not attributes.is_resource:
        return ScopedRight("", Right(attributes.verb, path=attributes.path[:MAX_TEXT]))
    resource = _with_subresource(attributes.resource, attributes.subresource)
    right = Right(attributes.verb, attributes.group, resource, attributes.name[:MAX_TEXT])
    return ScopedRight(_scope(attributes.group, attributes.resource, attributes.namespace), right)


def request_rights(info: RequestInfo, access: Access, code: int | None) -> Iterator[ScopedRight]:
    """Yield the rights that a request needed: an update that creates an object needs the verb create, too."""
    if not info.is_resource:
        yield ScopedRight("", Right(info.verb, path=info.path))
        return
    verbs = [info.verb]
    if info.verb in _UPDATES and code == _CREATED:
        verbs.append("create")
    if info.verb == "get" and info.subresource in _STREAMS:  # a WebSocket, which begins with a GET
        verbs.append("create")
    resource = _with_subresource(info.resource, info.subresource)
    for verb in verbs:
        scope = _scope(info.group, info.resource, info.namespace)
        yield ScopedRight(scope, Right(verb, info.group, resource, access.name))


def _with_subresource(resource: str, subresource: str) -> str:
    return f"{resource}/{subresource}" if subresource else resource


def _scope(group: str, resource: str, namespace: str) -> str:
    """Return the namespace of the role: that of a namespace itself is authorized in it, but it is cluster-scoped."""
    return "" if GroupResource(group, resource) == NAMESPACES else namespace


def is_long(rights: Iterable[ScopedRight]) -> bool:
    """Return whether a text was cut, so that a rule of it would be wrong."""
    return any(len(text) >= MAX_TEXT for _, right in rights for text in right)
