"""Which requests are selected: user, verb, resource. That selects recorded calls, and requests that get a fault.

Patterns may have the wildcards `*` and `?`. Resources are named as in RBAC rules: `pods`, `pods/status`, or
`deployments.apps` with the group. They are matched with the server's RequestInfo.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from mockube.apimachinery import labels
from mockube.apimachinery.labels import SelectorError
from mockube.apiserver.authz.rbac.policy import CLUSTER_ROLE_BINDINGS
from mockube.apiserver.bootstrap import rbac
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.user import SERVICE_ACCOUNT
from mockube.component_base.suggestions import did_you_mean

from .patterns import Pattern

CONTROLLERS: Final = "system:kube-controller-manager"
"""The user as which mockube's own controllers, scheduler and kubelets are authenticated, unless each has a service account."""
_ROLES: Final = "system:controller:"
"""The prefix of upstream's roles for single controllers."""
Verb: TypeAlias = Literal["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
VERBS: Final = get_args(Verb)
_VERBS_OF_METHODS: Final = {
    "post": "create",
    "put": "update",
    "apply": "patch",
    "replace": "update",
    "edit": "patch",
}
"""The verbs of methods of HTTP and of commands of kubectl with other names."""


@cache
def _accounts() -> frozenset[str]:
    """Return the users of upstream's controllers: the service accounts to which the bootstrap policy binds their roles."""
    return frozenset(
        f"{SERVICE_ACCOUNT}{subject['namespace']}:{subject['name']}"
        for binding in rbac.policy()
        if binding.resource == rbac.resource_name(CLUSTER_ROLE_BINDINGS) and binding.name.startswith(_ROLES)
        for subject in binding.content["subjects"]
    )


def is_controller(user: str) -> bool:
    """Return whether a user is mockube's controller manager, or one of its controllers."""
    return user == CONTROLLERS or user in _accounts()


class Match(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Criteria that all have to match, as plain data. Without `user`, requests of mockube's own controllers do not match."""

    user: str = ""
    agent: str = ""
    """A prefix of the User-Agent, or a pattern."""
    verbs: tuple[str, ...] = ()
    resource: str = ""
    namespace: str | None = None
    name: str = ""
    path: str = ""
    labels: str = ""
    """A label selector of the object that the request names, as the object is before the request."""
    node: str = ""
    """The node that the named object belongs to: the node itself, its Lease, or a pod on it."""

    def check(self) -> None:
        """Raise ValueError for an unknown verb, or an invalid pattern. Whether a resource is served is checked by `served_names`."""
        __tracebackhide__ = True
        for verb in self.verbs:
            check_verb(verb)
        try:
            Matcher(self)
        except SelectorError as error:
            raise ValueError(f"labels: {error}") from error


def no_labels(_: RequestInfo) -> Mapping[str, str]:
    return {}


def no_node(_: RequestInfo) -> str:
    return ""


class Candidate:
    """A request that is compared with criteria: what they need of it is looked up once, however many they are."""

    def __init__(
        self,
        user: str,
        agent: str,
        info: RequestInfo,
        labels_of: Callable[[RequestInfo], Mapping[str, str]] = no_labels,
        node_of: Callable[[RequestInfo], str] = no_node,
    ) -> None:
        """`labels_of` returns the labels of the object that the request names, `node_of` the node that it belongs to."""
        self.user, self.agent, self.info = user, agent, info
        self._labels_of, self._node_of = labels_of, node_of

    @cached_property
    def is_of_controller(self) -> bool:
        return is_controller(self.user)

    @cached_property
    def resources(self) -> tuple[str, str]:
        """The resource as in a rule of RBAC, without its group and with it."""
        info = self.info
        subresource = f"/{info.subresource}" if info.subresource else ""
        return f"{info.resource}{subresource}", f"{info.resource}.{info.group}{subresource}"

    @cached_property
    def labels(self) -> Mapping[str, str]:
        return self._labels_of(self.info)

    @cached_property
    def node(self) -> str:
        return self._node_of(self.info)


class Matcher:
    """Criteria that are compiled for the comparison with many requests."""

    def __init__(self, match: Match) -> None:
        """Compile criteria; raise ValueError for a pattern that is too long, SelectorError for a label selector."""
        __tracebackhide__ = True
        self._user = _pattern(match.user)
        self._agent = _pattern(match.agent and match.agent + "*")
        self._verbs = frozenset(match.verbs)
        self._resource = _pattern(match.resource)
        self._namespace = None if match.namespace is None else Pattern(match.namespace)
        self._name = _pattern(match.name)
        self._path = _pattern(match.path)
        self._node = _pattern(match.node)
        self._labels = labels.parse(match.labels) if match.labels else None
        self._is_of_resources = bool(match.verbs or match.resource) or match.namespace is not None
        patterns = (
            self._user,
            self._agent,
            self._resource,
            self._resource,  # compared without the group and with it
            self._namespace,
            self._name,
            self._path,
            self._node,
        )
        requirements = () if self._labels is None else self._labels.requirements
        self.cost = sum(each.cost for each in patterns if each is not None) + len(requirements)
        """The microseconds that a comparison takes at most, more than one without wildcards."""

    def matches(self, request: Candidate) -> bool:
        info = request.info
        if self._is_of_resources and not info.is_resource:
            return False
        return (
            (not self._verbs or info.verb in self._verbs)
            and (not request.is_of_controller if self._user is None else self._user.matches(request.user))
            and (self._name is None or self._name.matches(info.name))
            and (self._namespace is None or self._namespace.matches(info.namespace))
            and (self._resource is None or any(map(self._resource.matches, request.resources)))
            and (self._agent is None or self._agent.matches(request.agent))
            and (self._path is None or self._path.matches(info.path))
            and (self._labels is None or self._labels.matches(request.labels))
            and (self._node is None or (bool(request.node) and self._node.matches(request.node)))
        )


def _pattern(text: str) -> Pattern | None:
    """Return a criterion; None without one."""
    __tracebackhide__ = True
    return Pattern(text) if text else None


def check_verb(name: object, verbs: Sequence[str] = VERBS) -> None:
    """Raise ValueError for a verb that is none of these."""
    __tracebackhide__ = True
    if name in verbs:
        return
    kubernetes_verb = _VERBS_OF_METHODS.get(str(name).lower())
    suggestion = f': did you mean "{kubernetes_verb}"?' if kubernetes_verb else did_you_mean(str(name), verbs)
    raise ValueError(f'"{name}" is not a verb, must be one of {", ".join(verbs)}{suggestion}')
