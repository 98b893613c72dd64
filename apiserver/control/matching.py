"""Which requests are selected: user, verb, resource. That selects recorded calls, and requests that get a fault.

Patterns may have the wildcards `*` and `?`. Resources are named as in RBAC rules: `pods`, `pods/status`, or
`deployments.apps` with the group. They are matched with the server's RequestInfo.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

from mockube.apimachinery import labels
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.wildcards import matches_wildcards
from mockube.apiserver.authz.rbac.policy import CLUSTER_ROLE_BINDINGS
from mockube.apiserver.bootstrap import rbac
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.user import SERVICE_ACCOUNT
from mockube.component_base.suggestions import did_you_mean

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
        """Raise ValueError for an unknown verb. Whether a resource is served is checked by `served_names`."""
        __tracebackhide__ = True
        for verb in self.verbs:
            check_verb(verb)
        try:
            labels.parse(self.labels)
        except SelectorError as error:
            raise ValueError(f"labels: {error}") from error

    def matches_labels(self, of_object: Mapping[str, str]) -> bool:
        return labels.parse(self.labels).matches(of_object)

    def matches_node(self, of_object: str) -> bool:
        return bool(of_object) and matches_wildcards(of_object, self.node)

    def matches(self, user: str, agent: str, info: RequestInfo) -> bool:
        return (
            (matches_wildcards(user, self.user) if self.user else not is_controller(user))
            and (not self.agent or matches_wildcards(agent, self.agent + "*"))
            and (not self.verbs or (info.is_resource and info.verb in self.verbs))
            and (not self.resource or _matches_resource(info, self.resource))
            and (
                self.namespace is None
                or (info.is_resource and matches_wildcards(info.namespace, self.namespace))
            )
            and (not self.name or matches_wildcards(info.name, self.name))
            and (not self.path or matches_wildcards(info.path, self.path))
        )


def check_verb(name: object, verbs: Sequence[str] = VERBS) -> None:
    """Raise ValueError for a verb that is none of these."""
    __tracebackhide__ = True
    if name in verbs:
        return
    kubernetes_verb = _VERBS_OF_METHODS.get(str(name).lower())
    suggestion = f': did you mean "{kubernetes_verb}"?' if kubernetes_verb else did_you_mean(str(name), verbs)
    raise ValueError(f'"{name}" is not a verb, must be one of {", ".join(verbs)}{suggestion}')


def _matches_resource(info: RequestInfo, pattern: str) -> bool:
    subresource = f"/{info.subresource}" if info.subresource else ""
    names = (f"{info.resource}{subresource}", f"{info.resource}.{info.group}{subresource}")
    return info.is_resource and any(matches_wildcards(name, pattern) for name in names)
