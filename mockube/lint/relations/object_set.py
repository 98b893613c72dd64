"""All objects of the files, by what rules look for: kind, namespace and name, the pods that they create, who creates more. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Final, TypeVar

import msgspec
import orjson
from msgspec import Struct

from mockube.apimachinery import wellknown
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.labels import selector as label_selectors
from mockube.apimachinery.labels.selector import Requirement, Selector
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.resource_config import REGISTERED
from mockube.importing.cleaning import DEFINITION
from mockube.lint import findings
from mockube.lint.objects import LintObject

from .controller_labels import Patterns, controller_labels, may_match
from .fields import (
    ClaimTemplate,
    Container,
    ContainerPort,
    Labels,
    LabelSelector,
    Metadata,
    PodSpec,
    RoleFields,
    StatefulSetFields,
    TemplateFields,
    Volume,
)

CONFIG_MAP: Final = GroupKind("", "ConfigMap")
SECRET: Final = GroupKind("", "Secret")
SERVICE: Final = GroupKind("", "Service")
SERVICE_ACCOUNT: Final = GroupKind("", "ServiceAccount")
CLAIM: Final = GroupKind("", "PersistentVolumeClaim")
STATEFUL_SET: Final = GroupKind("apps", "StatefulSet")
DEPLOYMENT: Final = GroupKind("apps", "Deployment")
JOBS: Final = (GroupKind("batch", "Job"), GroupKind("batch", "CronJob"))
INGRESS: Final = GroupKind("networking.k8s.io", "Ingress")
_RBAC: Final = "rbac.authorization.k8s.io"
ROLE: Final = GroupKind(_RBAC, "Role")
CLUSTER_ROLE: Final = GroupKind(_RBAC, "ClusterRole")

_TEMPLATES: Final[Mapping[GroupKind, str]] = {
    GroupKind("", "Pod"): "",
    GroupKind("", "PodTemplate"): "template",
    GroupKind("", "ReplicationController"): "spec.template",
    DEPLOYMENT: "spec.template",
    STATEFUL_SET: "spec.template",
    GroupKind("apps", "DaemonSet"): "spec.template",
    GroupKind("apps", "ReplicaSet"): "spec.template",
    GroupKind("batch", "Job"): "spec.template",
    GroupKind("batch", "CronJob"): "spec.jobTemplate.spec.template",
    GroupKind("argoproj.io", "Rollout"): "spec.template",
}
"""The fields with the pod templates of kinds whose pods are as their templates."""
WORKLOADS: Final = frozenset(
    {"pods", "replicationcontrollers", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs"}
)
"""The resources from which pods come: who may create one creates pods that are not in the files."""
_WORKLOAD_OWNERS: Final = frozenset(
    {
        ("monitoring.coreos.com", kind)
        for kind in ("Alertmanager", "Prometheus", "PrometheusAgent", "ThanosRuler")
    }
)
_PASSIVE_GROUPS: Final = (
    *("monitoring.coreos.com", "cert-manager.io", "gateway.networking.k8s.io", "external-secrets.io"),
    *("bitnami.com", "networking.istio.io", "security.istio.io", "traefik.io", "traefik.containo.us"),
    *("keda.sh", "autoscaling.k8s.io", "policy.networking.k8s.io", "snapshot.storage.k8s.io", "cilium.io"),
    *(
        "kyverno.io",
        "crd.projectcalico.org",
        "metallb.io",
        "admissionregistration.k8s.io",
        "secrets-store.csi.x-k8s.io",
    ),
)
"""Groups of custom resources whose controllers create no pods, except for `_WORKLOAD_OWNERS`."""
_FILLED_IN: Final = "inject.istio.io/templates"
_MAX_NAME: Final = 253
_PORT: Final = re.compile(r"(?<![\w.])\d{2,5}(?!\w)")
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")

T = TypeVar("T", bound=Struct)


class ContainerAt(Struct, frozen=True, kw_only=True):
    """A container of a pod, and its field."""

    path: str
    fields: Container
    runs: bool
    """Whether it runs as long as the pod, and can be reached: an init container does only if it is a sidecar."""


class PodTemplate(Struct, frozen=True, kw_only=True, dict=True):
    """The pods of an object: what it is, or what it creates."""

    item: LintObject
    namespace: str
    path: str
    """The field with the template; "" if the object is a pod."""
    metadata: Metadata
    spec: PodSpec
    claims: Sequence[ClaimTemplate] = ()
    """The claims that a StatefulSet creates for each pod, which are volumes too."""
    is_complete: bool = True
    """Whether the pods are as in the files. An operator may add to the template of a custom resource."""

    @property
    def labels(self) -> Labels:
        return self.metadata.labels

    @cached_property
    def added_labels(self) -> Patterns:
        """The labels that the pods get besides those of the template."""
        spec = self.item.tree.get("spec")
        return controller_labels(self.item.group_kind, self.item.name, spec if isinstance(spec, dict) else {})

    def meets(self, requirement: Requirement) -> bool:
        """Return whether pods meet a requirement; a label that a controller adds has a value that is not known here."""
        return requirement.compile()(self.labels) or may_match(requirement, self.added_labels)

    def is_selected(self, selector: Selector) -> bool:
        return not selector.matches_nothing and all(map(self.meets, selector.requirements))

    @cached_property
    def volumes(self) -> Sequence[tuple[int, Volume]]:
        """The volumes with their indexes, without those that a claim template of the same name replaces."""
        claims = {each.metadata.name for each in self.claims}
        return [(i, each) for i, each in enumerate(self.spec.volumes) if each.name not in claims]

    @cached_property
    def containers(self) -> Sequence[ContainerAt]:
        """The containers in the order in which they start."""
        init = (
            ContainerAt(
                path=f"{self.field('initContainers')}[{i}]", fields=each, runs=each.restart_policy == "Always"
            )
            for i, each in enumerate(self.spec.init_containers)
        )
        others = (
            ContainerAt(path=f"{self.field('containers')}[{i}]", fields=each, runs=True)
            for i, each in enumerate(self.spec.containers)
        )
        return [*init, *others]

    @cached_property
    def ports(self) -> Sequence[ContainerPort]:
        """The ports that the running containers declare."""
        return [port for each in self.containers if each.runs for port in each.fields.ports]

    @cached_property
    def mentioned_numbers(self) -> Collection[int]:
        """The numbers in commands, arguments and variables, which may be ports that no container declares."""
        texts = [
            text
            for each in self.containers
            for text in (
                *each.fields.command,
                *each.fields.args,
                *(variable.value for variable in each.fields.env),
            )
        ]
        return {int(number) for text in texts for number in _PORT.findall(text)}

    @property
    def may_get_containers(self) -> bool:
        """Whether a mesh fills in a container, whose ports nobody knows here: one for a gateway."""
        return _FILLED_IN in self.metadata.annotations or any(
            each.fields.image in ("", "auto") for each in self.containers
        )

    def field(self, name: str) -> str:
        return f"{self.path}.spec.{name}" if self.path else f"spec.{name}"


class ObjectSet:
    """The objects that are checked together."""

    def __init__(
        self,
        objects: Sequence[LintObject],
        *,
        namespace: str,
        release: str,
        packs: Collection[GroupKind] = (),
    ) -> None:
        """`namespace` is that of objects that name none, or ""; `release` that of charts, `packs` the kinds of packs."""
        self.release = release
        self._is_namespace_given = bool(namespace)
        self._default_namespace = namespace or wellknown.NAMESPACE_DEFAULT
        self._pack_kinds = packs
        self.objects = [
            each
            for each in objects
            if isinstance(each.tree, dict)
            and not any(problem.outcome is findings.Outcome.REFUSED for problem in each.problems)
        ]
        self._by_kind: dict[GroupKind, list[LintObject]] = {}
        for each in self.objects:
            self._by_kind.setdefault(each.group_kind, []).append(each)
        self._decoded: dict[tuple[int, type[Struct]], Struct | None] = {}

    @cached_property
    def has_charts(self) -> bool:
        return any(each.chart for each in self.objects)

    def is_namespace_known(self, namespace: str) -> bool:
        """Return whether a namespace is one that files or the user name: a chart may be made for another one than the default."""
        return namespace != wellknown.NAMESPACE_DEFAULT or not self.has_charts or self._is_namespace_given

    def of(self, *kinds: GroupKind) -> Iterator[LintObject]:
        for kind in kinds:
            yield from self._by_kind.get(kind, ())

    def decoded(self, type_: type[T], *kinds: GroupKind) -> Iterator[tuple[LintObject, T]]:
        """Yield the objects of kinds that have the fields' types, with their fields."""
        for item in self.of(*kinds):
            fields = self.decode(item, type_)
            if fields is not None:
                yield item, fields

    def decode(self, item: LintObject, type_: type[T]) -> T | None:
        key = (id(item), type_)
        if key not in self._decoded:
            self._decoded[key] = _decode(item.body, type_)
        return self._decoded[key]  # type: ignore[return-value]

    def namespace_of(self, item: LintObject) -> str:
        """Return the namespace in which an object is created; "" if its kind has none."""
        if item.group_kind in _cluster_scoped():
            return ""
        return item.namespace or self._default_namespace

    @cached_property
    def _names(self) -> Mapping[GroupKind, Mapping[tuple[str, str], Sequence[LintObject]]]:
        names: dict[GroupKind, dict[tuple[str, str], list[LintObject]]] = {}
        for kind, items in self._by_kind.items():
            by_name = names[kind] = {}
            for item in items:
                by_name.setdefault((self.namespace_of(item), item.name), []).append(item)
        return names

    def find(self, kind: GroupKind, namespace: str, name: str) -> Sequence[LintObject]:
        return self._names.get(kind, {}).get((namespace, name), ())

    def names(self, kind: GroupKind) -> Collection[tuple[str, str]]:
        """Return the namespaces and names of all objects of a kind."""
        return self._names.get(kind, {}).keys()

    @cached_property
    def pods(self) -> Mapping[str, Sequence[PodTemplate]]:
        """The pods of all objects, by namespace."""
        pods: dict[str, list[PodTemplate]] = {}
        for item in self.objects:
            for pod in self._pods_of(item):
                pods.setdefault(pod.namespace, []).append(pod)
        return pods

    def all_pods(self) -> Iterator[PodTemplate]:
        for pods in self.pods.values():
            yield from pods

    def matched(self, namespace: str, selector: Selector) -> Sequence[PodTemplate]:
        return [pod for pod in self.pods.get(namespace, ()) if pod.is_selected(selector)]

    def _pods_of(self, item: LintObject) -> Iterator[PodTemplate]:
        kind, namespace = item.group_kind, self.namespace_of(item)
        path = _TEMPLATES.get(kind)
        if path is not None:
            stateful = self.decode(item, StatefulSetFields)
            claims = stateful.spec.volume_claim_templates if stateful is not None else ()
            yield from self._pod(item, namespace, path, claims)
        elif is_custom(kind) and kind != DEFINITION and b'"containers"' in item.body:
            for path in _template_paths(item.tree, ""):
                yield from self._pod(item, namespace, path, (), is_complete=kind in self._pack_kinds)

    def _pod(
        self,
        item: LintObject,
        namespace: str,
        path: str,
        claims: Sequence[ClaimTemplate],
        *,
        is_complete: bool = True,
    ) -> Iterator[PodTemplate]:
        tree = item.tree
        for name in path.split(".") if path else ():
            tree = tree.get(name) if isinstance(tree, dict) else None
        fields = _decode(orjson.dumps(tree), TemplateFields) if path else self.decode(item, TemplateFields)
        if fields is not None:
            yield PodTemplate(
                item=item,
                namespace=namespace,
                path=path,
                metadata=fields.metadata,
                spec=fields.spec,
                claims=claims,
                is_complete=is_complete,
            )

    @cached_property
    def creates_pods(self) -> bool:
        """Whether something in the files creates pods that are not in them: an operator, or one of the cluster."""
        with_pods = {pod.item.group_kind for pod in self.all_pods()}
        return self.creates(WORKLOADS) or any(
            is_custom(kind)
            and kind not in with_pods
            and kind not in self._pack_kinds
            and ((kind.group, kind.kind) in _WORKLOAD_OWNERS or kind.group not in _PASSIVE_GROUPS)
            for kind in self._by_kind
        )

    def creates(self, resources: Collection[str]) -> bool:
        """Return whether a role of the files lets somebody create one of some resources."""
        return not self._created.isdisjoint((*resources, "*"))

    @cached_property
    def _created(self) -> frozenset[str]:
        """The resources that roles of the files let somebody create."""
        return frozenset(
            resource
            for _, role in self.decoded(RoleFields, ROLE, CLUSTER_ROLE)
            for rule in role.rules
            if not {"create", "*"}.isdisjoint(rule.verbs)
            for resource in rule.resources
        )

    @cached_property
    def custom_texts(self) -> Collection[str]:
        """The texts in custom resources: their controllers create objects with names from these."""
        texts: set[str] = set()
        for kind, items in self._by_kind.items():
            if is_custom(kind) and kind != DEFINITION:
                for item in items:
                    texts.update(_texts(item.tree))
        return texts


def is_custom(kind: GroupKind) -> bool:
    """Return whether a kind is not one of Kubernetes: its controller is not known."""
    return "." in kind.group and kind.group not in REGISTERED


def selector_of(fields: LabelSelector | None) -> Selector | None:
    """Return the selector of a field; None if a server refuses it."""
    if fields is None:
        return label_selectors.NOTHING
    try:
        return label_selectors.from_label_selector(
            {"matchLabels": fields.match_labels, "matchExpressions": fields.match_expressions}
        )
    except (label_selectors.SelectorError, AttributeError, TypeError):
        return None


@cache
def _cluster_scoped() -> Collection[GroupKind]:
    return {kind.resource.group_kind for kind in NEWEST.all if not kind.resource.namespaced}


def _decode(body: bytes, type_: type[T]) -> T | None:
    if b"null" in body:
        body = orjson.dumps(_without_nulls(orjson.loads(body)))
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.DecodeError:
        return None


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _template_paths(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of pod templates in a custom resource: of what has containers in its `spec`."""
    if not isinstance(value, dict):
        return
    for name, item in value.items():
        if not isinstance(item, dict):
            continue
        inner = f"{path}.{name}" if path else name
        spec = item.get("spec")
        containers = spec.get("containers") if isinstance(spec, dict) else None
        if isinstance(containers, list) and containers and "." not in name:
            yield inner
        elif "." not in name:
            yield from _template_paths(item, inner)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) <= _MAX_NAME and _NAME.fullmatch(value):
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
