"""The flow schema of a request and its priority level, which do not limit requests here."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.metrics import families
from mockube.apiserver.registry.registry import WRONG_TYPE_ERRORS, Backend
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.user import User
from mockube.component_base.metrics import MetricsRegistry, Number

FLOW_SCHEMAS: Final = GroupResource("flowcontrol.apiserver.k8s.io", "flowschemas")
PRIORITY_LEVELS: Final = GroupResource("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations")
_CACHE_SIZE: Final = 4096
_ALL: Final = "*"
_SCHEMA: Final = "X-Kubernetes-Pf-Flowschema-Uid"
_LEVEL: Final = "X-Kubernetes-Pf-Prioritylevel-Uid"


class Flow(NamedTuple):
    """What requests of one flow schema share."""

    head: str
    """The header lines with the uids of the schema and the level."""
    dispatched: Number


class _Schema(NamedTuple):
    rules: Sequence[ReadOnlyTree]
    flow: Flow


class Flows:
    """Finds the flow schema of a request in the watch cache.

    A request is matched once for each user and kind of request, until a schema or a level changes.
    """

    def __init__(self, backend: Backend, metrics: MetricsRegistry) -> None:
        self._backend = backend
        self._dispatched = metrics.numbers(families.FLOW_DISPATCHED)
        self._none = Flow("", Number())
        layout, rows = backend.layout, backend.rows
        self._caches = [
            backend.watch_cache.resource_cache(layout.prefix(rows[name]))
            for name in (FLOW_SCHEMAS, PRIORITY_LEVELS)
        ]
        self._revisions: tuple[int, int] | None = None
        self._schemas: Sequence[_Schema] = ()
        self._flows: dict[Any, Flow] = {}

    def of(self, user: User, info: RequestInfo) -> Flow:
        """Return the flow of a request."""
        schemas, levels = self._caches
        newest = schemas.history.newest, levels.history.newest
        if newest != self._revisions:
            self._revisions, self._schemas, self._flows = newest, self._sorted_schemas(), {}
        key = (
            *(user.name, tuple(user.groups), info.verb, info.group, info.resource, info.subresource),
            info.namespace if info.is_resource else info.path,
        )
        flow = self._flows.get(key)
        if flow is None:
            if len(self._flows) >= _CACHE_SIZE:
                self._flows.clear()
            flow = self._flows[key] = self._find(user, info)
        return flow

    def _find(self, user: User, info: RequestInfo) -> Flow:
        for schema in self._schemas:
            if any(_matches(rule, user, info) for rule in schema.rules):
                return schema.flow
        return self._none

    def _sorted_schemas(self) -> Sequence[_Schema]:
        """Return the schemas whose level exists, in order of precedence."""
        schemas, levels = self._caches
        uids = {meta.name(tree): meta.uid(tree) for tree in (stored.tree() for stored in levels)}
        ranked_schemas = []
        for stored in schemas:
            try:
                tree = stored.tree()
                spec, name = tree["spec"], meta.name(tree)
                level_name = spec["priorityLevelConfiguration"]["name"]
                level = uids.get(level_name)
                if level is not None:
                    head = f"{_SCHEMA}: {meta.uid(tree)}\r\n{_LEVEL}: {level}\r\n"
                    schema = _Schema(
                        spec.get("rules") or (), Flow(head, self._dispatched.of(level_name, name))
                    )
                    ranked_schemas.append((spec.get("matchingPrecedence", 0), name, schema))
            except WRONG_TYPE_ERRORS as error:
                self._backend.watch_cache.report_malformed(stored, error)
        return [schema for _, _, schema in sorted(ranked_schemas, key=lambda ranked: ranked[:2])]


def _matches(rule: ReadOnlyTree, user: User, info: RequestInfo) -> bool:
    if not any(_includes_user(subject, user) for subject in rule.get("subjects") or ()):
        return False
    if info.is_resource:
        return any(_includes_resource(each, info) for each in rule.get("resourceRules") or ())
    return any(_includes_url(each, info) for each in rule.get("nonResourceRules") or ())


def _includes_user(subject: ReadOnlyTree, user: User) -> bool:
    """Whether the subject includes the user; validation ensures one of the three members."""
    if named := subject.get("user"):
        return named["name"] in (_ALL, user.name)
    if group := subject.get("group"):
        return group["name"] == _ALL or group["name"] in user.groups
    account = subject.get("serviceAccount") or {}
    prefix = f"system:serviceaccount:{account.get('namespace')}:"
    if account.get("name") == _ALL:
        return user.name.startswith(prefix)
    return user.name == f"{prefix}{account.get('name')}"


def _contains(values: Sequence[str] | None, value: str) -> bool:
    return values is not None and (value in values or _ALL in values)


def _includes_resource(rule: ReadOnlyTree, info: RequestInfo) -> bool:
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    if not (_contains(rule.get("verbs"), info.verb) and _contains(rule.get("apiGroups"), info.group)):
        return False
    if not _contains(rule.get("resources"), resource):
        return False
    return (
        _contains(rule.get("namespaces"), info.namespace)
        if info.namespace
        else bool(rule.get("clusterScope"))
    )


def _includes_url(rule: ReadOnlyTree, info: RequestInfo) -> bool:
    urls = rule.get("nonResourceURLs") or ()
    if not _contains(rule.get("verbs"), info.verb):
        return False
    folders = (url.rstrip(_ALL) for url in urls if url.endswith("/*"))
    return _contains(urls, info.path) or any(map(info.path.startswith, folders))
