"""The registered webhooks, and which of them match a write: found once for each operation, resource and subresource."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.admission.rules import Equivalents, no_equivalents, row_of_rules
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation
from mockube.apiserver.storage.stored_object import StoredObject

GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = GroupResource(GROUP, "mutatingwebhookconfigurations")
VALIDATING: Final = GroupResource(GROUP, "validatingwebhookconfigurations")
EXEMPT: Final = frozenset(
    f"{prefix}{suffix}"
    for prefix in ("validating", "mutating")
    for suffix in ("webhookconfigurations", "admissionpolicies", "admissionpolicybindings")
)
"""Resources of the group that no webhook is called for, so that a faulty webhook can be deleted."""
SIMULATED_FLAG: Final = "simulated-webhooks"
SIMULATED_ANNOTATION: Final = f"mockube.dev/{SIMULATED_FLAG}"
"""The annotation of a configuration that decides for its webhooks as `--simulated-webhooks` does for all."""


class Hook(Struct, frozen=True, kw_only=True, eq=False):
    """One webhook of a configuration."""

    name: str
    configuration: str
    uid: str
    index: int
    """Its index among the webhooks of all configurations."""
    spec: ReadOnlyTree
    namespaces: Selector
    objects: Selector
    conditions: Sequence[str]
    """The expressions that must all be true of a write."""
    simulated: str = ""
    """The value of `SIMULATED_ANNOTATION`; empty if the configuration does not have it."""

    @property
    def fails_open(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")

    @property
    def seconds(self) -> int:
        return self.spec.get("timeoutSeconds") or 10

    @property
    def reinvocable(self) -> bool:
        return bool(self.spec.get("reinvocationPolicy") == "IfNeeded")


class WebhookInvocation(Struct, frozen=True, kw_only=True):
    """A webhook that matches a write, and the row whose version of the object it receives."""

    hook: Hook
    row: Resource


class Hooks:
    """The webhooks of some configurations."""

    def __init__(self, configurations: Sequence[StoredObject], equivalents: Equivalents) -> None:
        self.configurations = configurations
        self._hooks = [*_read(configurations)]
        self._equivalents = equivalents
        self._invocations: dict[tuple[Operation, Resource, str], Sequence[WebhookInvocation]] = {}

    def matching(self, operation: Operation, row: Resource, subresource: str) -> Sequence[WebhookInvocation]:
        """Return the webhooks whose rules match a write, in their order."""
        key = operation, row, subresource
        if key not in self._invocations:
            self._invocations[key] = [*self._find(operation, row, subresource)]
        return self._invocations[key]

    def _find(self, operation: Operation, row: Resource, subresource: str) -> Iterator[WebhookInvocation]:
        if row.group == GROUP and row.name in EXEMPT:
            return
        for hook in self._hooks:
            is_equivalent = hook.spec.get("matchPolicy", "Equivalent") == "Equivalent"
            equivalents = self._equivalents if is_equivalent else no_equivalents
            rules = hook.spec.get("rules") or ()
            matching_row = row_of_rules(rules, operation, row, subresource, equivalents)
            if matching_row is not None:
                yield WebhookInvocation(hook=hook, row=matching_row)


def _read(configurations: Sequence[StoredObject]) -> Iterator[Hook]:
    index = 0
    for tree in sorted((stored.tree() for stored in configurations), key=meta.name):
        seen: dict[str, int] = {}
        for spec in tree.get("webhooks") or ():
            name, configuration = spec.get("name", ""), meta.name(tree)
            number = seen[name] = seen.get(name, -1) + 1
            yield Hook(
                name=name,
                configuration=configuration,
                uid=f"{configuration}/{name}/{number}",
                index=index,
                spec=spec,
                namespaces=labels.from_label_selector(spec.get("namespaceSelector") or {}),
                objects=labels.from_label_selector(spec.get("objectSelector") or {}),
                conditions=[condition["expression"] for condition in spec.get("matchConditions") or ()],
                simulated=meta.annotations(tree).get(SIMULATED_ANNOTATION, ""),
            )
            index += 1


def selects(hook: Hook, attributes: AdmissionAttributes, namespace: Callable[[], Any]) -> bool:
    """Return whether the selectors of a webhook match the namespace and the object; `namespace` returns the labels."""
    if not hook.namespaces.empty:
        namespace_labels = namespace()
        if namespace_labels is not None and not hook.namespaces.matches(namespace_labels):
            return False
    if hook.objects.empty:
        return True
    trees = (attributes.object, attributes.old)
    return any(tree is not None and hook.objects.matches(meta.labels(tree)) for tree in trees)
