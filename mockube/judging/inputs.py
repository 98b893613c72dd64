"""What is tested: the objects that install an operator, a sample of its custom resource, and how the operator runs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.failure import UsageError
from mockube.lint.inputs import InputReader
from mockube.lint.objects import LintObject
from mockube.lint.renderers import ChartOptions

from . import object_kinds
from .input_shapes import malformation

DEFAULT_ACCOUNT: Final = "default"
_FIELDS_OF_POD: Final = ("metadata.name", "metadata.uid", "status.podIP", "status.podIPs")


class Account(Struct, frozen=True, kw_only=True):
    """The service account of an operator."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.namespace}:{self.name}"


class Workload(Struct, frozen=True, kw_only=True):
    """The workload of the manifests whose pods are the operator."""

    kind: str
    namespace: str
    name: str
    account: Account
    replicas: int
    recreates: bool
    """Two of its pods never run at the same time: one replica, and the strategy Recreate or a StatefulSet."""
    environment: Mapping[str, str]
    """The variables of its first container that do not depend on the pod."""
    knows_its_pod: bool = False
    """A variable of the container has the name or an address of its own pod, so that it may ask for it."""

    def is_made_by(self, tree: ReadOnlyTree) -> bool:
        """Return whether it is the workload that an object of the manifests is."""
        return (tree.get("kind"), meta.name(tree)) == (self.kind, self.name)


class Release(Struct, frozen=True, kw_only=True):
    """One version of the operator: its objects for each minor, and how it runs."""

    names: Sequence[str]
    objects: Mapping[str, Sequence[LintObject]]
    command: Sequence[str]
    chart: ChartOptions

    def trees(self, minor: str = minors.NEWEST) -> Sequence[ReadOnlyTree]:
        return [each.tree for each in self.objects[minor]]


class Sample(Struct, frozen=True, kw_only=True):
    """The custom resource, and the objects that it needs, which are created before it."""

    resource: ReadOnlyTree
    others: Sequence[ReadOnlyTree]
    definition: ReadOnlyTree
    """The CustomResourceDefinition of the resource."""
    names: Sequence[str]

    @property
    def is_namespaced(self) -> bool:
        return bool(self.definition["spec"].get("scope") == "Namespaced")

    @property
    def group(self) -> str:
        return meta.api_version(self.resource).rpartition("/")[0]

    @property
    def plural(self) -> str:
        return str(self.definition["spec"]["names"]["plural"])

    @property
    def full_name(self) -> str:
        """The name of the resource for kubectl, such as websites.example.com."""
        return f"{self.plural}.{self.group}"


def read_release(
    names: Sequence[str],
    minor_names: Sequence[str],
    chart: ChartOptions,
    *,
    command: Sequence[str],
) -> Release:
    objects = InputReader(minor_names, chart).read(names)
    for each in objects[minors.NEWEST]:
        _check(each)
    return Release(names=names, objects=objects, command=command, chart=chart)


def _check(item: LintObject) -> None:
    if item.problems:
        raise UsageError(f"{item.file}: {item.problems[0].message}")
    if not isinstance(item.tree, dict) or not meta.name(item.tree):
        raise UsageError(
            f"{item.file}: {item.title} is not an object with apiVersion, kind and metadata.name"
        )
    if problem := malformation(item.tree):
        raise UsageError(f"{item.file}: {item.title}: {problem}")


def read_sample(names: Sequence[str], trees: Sequence[ReadOnlyTree], chart: ChartOptions) -> Sample:
    """Read the custom resource, which is the first object of a kind that the manifests define."""
    objects = InputReader([minors.NEWEST], chart).read(names)[minors.NEWEST]
    for each in objects:
        _check(each)
    definitions = {_defined(tree): tree for tree in trees if object_kinds.is_definition(tree)}
    if not definitions:
        raise UsageError("no CustomResourceDefinition in the manifests: name the files that have it, too")
    for each in objects:
        found = definitions.get((each.api_version.rpartition("/")[0], each.kind))
        if found is not None:
            others = [other.tree for other in objects if other is not each]
            return Sample(resource=each.tree, others=others, definition=found, names=names)
    kinds = ", ".join(sorted(kind for _, kind in definitions))
    raise UsageError(
        f"{', '.join(names)}: no custom resource of a kind that the manifests define, which is one of {kinds}"
    )


def _defined(definition: ReadOnlyTree) -> tuple[str, str]:
    spec = definition.get("spec") or {}
    return str(spec.get("group", "")), str((spec.get("names") or {}).get("kind", ""))


def find_workload(trees: Sequence[ReadOnlyTree], group: str, namespace: str) -> Workload | None:
    """Return the workload whose service account has rights for a group; the first workload if none has."""
    found = [_workload(tree, namespace) for tree in trees if object_kinds.is_workload(tree)]
    bound = {*_accounts_with_rights(trees, group, namespace)}
    return next((each for each in found if each.account in bound), found[0] if found else None)


def _workload(tree: ReadOnlyTree, namespace: str) -> Workload:
    spec: Mapping[str, Any] = tree.get("spec") or {}
    pod: Mapping[str, Any] = (spec.get("template") or {}).get("spec") or {}
    own_namespace = meta.namespace(tree) or namespace
    kind = str(tree["kind"])
    replicas = spec.get("replicas", 1)
    account = Account(namespace=own_namespace, name=pod.get("serviceAccountName") or DEFAULT_ACCOUNT)
    container: Mapping[str, Any] = next(iter(pod.get("containers") or ()), {})
    return Workload(
        kind=kind,
        namespace=own_namespace,
        name=meta.name(tree),
        account=account,
        replicas=replicas if isinstance(replicas, int) else 1,
        recreates=replicas == 1 and object_kinds.replaces_pods_one_by_one(tree),
        environment=dict(
            _variables(container.get("env") or (), own_namespace, meta.name(tree), account.name)
        ),
        knows_its_pod=any(_field_path(each) in _FIELDS_OF_POD for each in container.get("env") or ()),
    )


def _variables(
    entries: Sequence[ReadOnlyTree], namespace: str, name: str, account: str
) -> Iterator[tuple[str, str]]:
    fields = {
        "metadata.namespace": namespace,
        "metadata.name": name,
        "spec.serviceAccountName": account,
    }
    for entry in entries:
        if "value" in entry and "$(" not in str(entry["value"]):
            yield str(entry["name"]), str(entry["value"])
        elif (path := _field_path(entry)) in fields:
            yield str(entry["name"]), fields[path]


def _field_path(entry: ReadOnlyTree) -> str:
    """Return the field of the pod whose value a variable has; "" for another value."""
    return str(((entry.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath") or "")


def _accounts_with_rights(trees: Sequence[ReadOnlyTree], group: str, namespace: str) -> Iterator[Account]:
    roles = {
        (tree["kind"], meta.name(tree))
        for tree in trees
        if object_kinds.is_role(tree) and _covers(tree, group)
    }
    for tree in trees:
        reference = tree.get("roleRef") or {}
        if object_kinds.is_binding(tree) and (reference.get("kind"), reference.get("name")) in roles:
            for subject in object_kinds.service_accounts(tree):
                own = subject.get("namespace") or meta.namespace(tree) or namespace
                yield Account(namespace=own, name=str(subject.get("name")))


def _covers(role: ReadOnlyTree, group: str) -> bool:
    return any({group, "*"} & {*(rule.get("apiGroups") or ())} for rule in role.get("rules") or ())


def with_second_account(
    trees: Sequence[ReadOnlyTree], account: Account, second: Account
) -> Iterator[ReadOnlyTree]:
    """Yield the bindings of a service account, each with a second one, which has the same rights."""
    for tree in trees:
        if not object_kinds.is_binding(tree):
            continue
        subjects = [*(tree.get("subjects") or ())]
        if any(
            subject.get("name") == account.name
            and (subject.get("namespace") or meta.namespace(tree) or account.namespace) == account.namespace
            for subject in object_kinds.service_accounts(tree)
        ):
            added = {"kind": "ServiceAccount", "name": second.name, "namespace": second.namespace}
            yield {**tree, "subjects": [*subjects, added]}
