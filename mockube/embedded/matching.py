"""Criteria for requests: user, verb, resource. Recorded calls are searched, and faults are injected, by the same criteria.

Everything may hold `*` and `?`. Resources are named as in the rules of RBAC: `pods`, `pods/status`, or
`deployments.apps` where the group matters. The matched record is one of the server's own request infos.
"""

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final, TypedDict

from msgspec import Struct

from mockube.apiserver.request_info import RequestInfo

CONTROLLERS: Final = "system:kube-controller-manager"
"""The user that mockube's own controllers, scheduler and kubelets are."""
VERBS: Final = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")

Words = str | Collection[str]


class Criteria(TypedDict, total=False):
    """What is not given does not matter; but of no `user`, mockube's own controllers are not meant."""

    user: str
    agent: str
    """The User-Agent: what it begins with, or a pattern."""
    verb: Words
    """One or several of Kubernetes' verbs."""
    resource: str
    namespace: str
    name: str
    path: str
    """Of the URL, without its query: for what is no resource, such as /version."""


class Matcher(Struct, frozen=True, kw_only=True):
    user: str = ""
    agent: str = ""
    verbs: tuple[str, ...] = ()
    resource: str = ""
    namespace: str | None = None
    name: str = ""
    path: str = ""

    def matches(self, user: str, agent: str, info: RequestInfo) -> bool:
        return (
            self._is_of(user)
            and (not self.agent or fnmatchcase(agent, self.agent + "*"))
            and (not self.verbs or (info.is_resource and info.verb in self.verbs))
            and (not self.resource or _is_called(info, self.resource))
            and (self.namespace is None or (info.is_resource and fnmatchcase(info.namespace, self.namespace)))
            and (not self.name or fnmatchcase(info.name, self.name))
            and (not self.path or fnmatchcase(info.path, self.path))
        )

    def _is_of(self, user: str) -> bool:
        return fnmatchcase(user, self.user) if self.user else user != CONTROLLERS


def matcher(criteria: Criteria) -> Matcher:
    """ValueError for what would never match, TypeError for what there is not."""
    for name in criteria:
        if name not in Criteria.__annotations__:
            raise TypeError(
                f'unknown criterion "{name}", must be one of {", ".join(Criteria.__annotations__)}'
            )
    verb = criteria.get("verb", ())
    verbs = (verb,) if isinstance(verb, str) else tuple(verb)
    for verb_name in verbs:
        if verb_name not in VERBS:
            raise ValueError(f'"{verb_name}" is not a verb, must be one of {", ".join(VERBS)}')
    resource = criteria.get("resource", "")
    if resource != resource.lower():
        raise ValueError(f'"{resource}" is not a resource: use the name in URLs, such as "pods"')
    return Matcher(
        user=criteria.get("user", ""),
        agent=criteria.get("agent", ""),
        verbs=verbs,
        resource=resource,
        namespace=criteria.get("namespace"),
        name=criteria.get("name", ""),
        path=criteria.get("path", ""),
    )


def _is_called(info: RequestInfo, pattern: str) -> bool:
    below = f"/{info.subresource}" if info.subresource else ""
    names = (f"{info.resource}{below}", f"{info.resource}.{info.group}{below}")
    return info.is_resource and any(fnmatchcase(name, pattern) for name in names)
