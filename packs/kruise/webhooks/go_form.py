"""Objects as OpenKruise's webhooks decode and encode them, and values as they print them in errors.

A webhook that changes an object returns all of it as Go encodes its structs: with those that are no pointers, without
fields that are empty, and with `creationTimestamp: null` in metadata of templates.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import gotext
from mockube.apimachinery.errors import DisplayedValue, FieldError
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.registry.body import decode_as
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.schema.decode import DecodeError

# --- objects. The functions raise DecodeError if a template has another type.

_REQUIRED: Final = frozenset(
    {"name", "key", "value", "operator", "orderedKey", "weight", "matchSelector", "start"}
)
"""Fields that are encoded even if they are empty."""
_POINTERS: Final = frozenset(
    {
        "partition", "maxUnavailable", "maxSurge", "replicas", "minReplicas", "maxReplicas",
        "imagePreDownloadParallelism",
    }
)  # fmt: skip
"""Fields that are numbers or texts, and are encoded even if they are an empty text."""
_NUMBERS: Final = frozenset({"gracePeriodSeconds"})
"""Numbers that are omitted if they are 0."""
_MAPS: Final = frozenset({"matchLabels", "labelsHandler", "partitions"})
_ENCODED: Final = frozenset({"template", "volumeClaimTemplates", "patch"})
"""Parts that are decoded as kinds of their own, or not at all."""


def _compact(tree: ReadOnlyTree) -> Tree:
    """Return a struct without its empty fields."""
    compacted: Tree = {}
    for name, value in tree.items():
        if name in _ENCODED:
            compacted[name] = value
        elif not _is_omitted(name, value):
            compacted[name] = _compact_value(value)
    return compacted


def _compact_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _compact(value)
    if isinstance(value, list):
        return [_compact_value(item) for item in value]
    return value


def _is_omitted(name: str, value: Any) -> bool:
    if name in _REQUIRED:
        return False
    if value is None or value is False or value == [] or (value == "" and name not in _POINTERS):
        return True
    return (name in _NUMBERS and value == 0) or (name in _MAPS and not value)


def decode_clone_set(registry: Registry, tree: ReadOnlyTree) -> Tree:
    return {**tree, "spec": _clone_set_spec(registry, tree["spec"])}


def decode_stateful_set(registry: Registry, tree: ReadOnlyTree) -> Tree:
    return {**tree, "spec": _stateful_set_spec(registry, tree["spec"])}


def decode_united_deployment(registry: Registry, tree: ReadOnlyTree) -> Tree:
    spec = _compact({name: value for name, value in tree["spec"].items() if name != "topology"})
    spec["template"] = {
        name: _workload(registry, name, workload) for name, workload in (spec.get("template") or {}).items()
    }
    spec["topology"] = _topology(tree["spec"].get("topology") or {})
    spec.setdefault("updateStrategy", {})
    return {**tree, "spec": spec}


def _clone_set_spec(registry: Registry, spec: ReadOnlyTree, path: str = "spec") -> Tree:
    decoded = _with_templates(registry, spec, path, "CloneSetSpec")
    if decoded.get("minReadySeconds") == 0:
        del decoded["minReadySeconds"]
    decoded.setdefault("scaleStrategy", {})
    return decoded


def _stateful_set_spec(registry: Registry, spec: ReadOnlyTree, path: str = "spec") -> Tree:
    decoded = _with_templates(registry, spec, path, "StatefulSetSpec")
    decoded.setdefault("volumeClaimUpdateStrategy", {})
    if "ordinals" in decoded:
        decoded["ordinals"].setdefault("start", 0)
    return decoded


def _with_templates(registry: Registry, spec: ReadOnlyTree, path: str, struct: str) -> Tree:
    decoded = _compact(spec)
    decoded["template"] = _pod_template(registry, spec.get("template"), path, struct)
    if claims := spec.get("volumeClaimTemplates"):
        decoded["volumeClaimTemplates"] = [_claim(registry, claim) for claim in claims]
    decoded.setdefault("updateStrategy", {})
    return decoded


def _pod_template(registry: Registry, template: Any, path: str, struct: str) -> Tree:
    """Decode a pod template at a path of an object; errors name the struct that contains it."""
    try:
        decoded: Tree = decode_as(registry, {"template": template}, ("v1", "PodTemplate")).tree["template"]
    except DecodeError as error:
        text = str(error).replace("Go struct field PodTemplate.", f"Go struct field {struct}.")
        raise DecodeError(_TEMPLATE_FIELD.sub(rf"\1{path}.", text)) from error
    return _with_times(decoded)


def _with_times(template: Tree) -> Tree:
    """Return a pod template with the times of its metadata and of the claims of ephemeral volumes."""
    for volume in template["spec"].get("volumes") or ():
        if claim := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
            volume["ephemeral"] = {"volumeClaimTemplate": _with_time(claim)}
    return _with_time(template)


_TEMPLATE_FIELD: Final = re.compile(r"(Go struct field [A-Za-z]+\.)(?=template\b)")


def _claim(registry: Registry, claim: Any) -> Tree:
    decoded: Tree = decode_as(registry, claim, ("v1", "PersistentVolumeClaim")).tree
    type_meta = {name: claim[name] for name in ("apiVersion", "kind") if name in claim}
    return _with_time(type_meta | {"spec": {}, "status": {}} | decoded)


def _with_time(tree: Tree) -> Tree:
    """Return an object with the time of its creation, which Go encodes even if there is none."""
    return tree | {"metadata": {"creationTimestamp": None} | (tree.get("metadata") or {})}


_WORKLOAD_FIELD: Final = re.compile(r"(Go struct field [A-Za-z]+\.)(?=spec\b|metadata\b)")
_OWN_FIELD: Final = re.compile(r"Go struct field [A-Za-z]+\.(spec of|metadata of)")
_WORKLOADS: Final = {"statefulSetTemplate": "StatefulSet", "deploymentTemplate": "Deployment"}
_SPECS: Final[Mapping[str, Callable[[Registry, ReadOnlyTree, str], Tree]]] = {
    "advancedStatefulSetTemplate": _stateful_set_spec,
    "cloneSetTemplate": _clone_set_spec,
}


def _workload(registry: Registry, name: str, workload: ReadOnlyTree) -> Tree:
    """Return the template of a workload: its metadata and its spec."""
    kind = _WORKLOADS.get(name)
    source = workload if kind else {"metadata": workload.get("metadata")}
    path = f"spec.template.{name}"
    try:
        decoded: Tree = decode_as(registry, dict(source), ("apps/v1", kind or "StatefulSet")).tree
    except DecodeError as error:
        struct = f"{name[0].upper()}{name[1:]}Spec"
        text = _OWN_FIELD.sub(rf"Go struct field {struct}.\1", str(error))
        raise DecodeError(_WORKLOAD_FIELD.sub(rf"\1{path}.", text)) from error
    spec = decoded["spec"] if kind else _SPECS[name](registry, workload.get("spec") or {}, f"{path}.spec")
    if kind:
        spec["template"] = _with_times(spec["template"])
        if claims := spec.get("volumeClaimTemplates"):
            spec["volumeClaimTemplates"] = [_with_time(claim) for claim in claims]
    return _with_time({"metadata": decoded.get("metadata"), "spec": spec})


def _topology(topology: ReadOnlyTree) -> Tree:
    decoded = _compact(topology)
    decoded.setdefault("scheduleStrategy", {})
    for subset in decoded.get("subsets") or ():
        subset.setdefault("nodeSelectorTerm", {})
    return decoded


# --- values in errors


def with_go_values(field_errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Show values of some types as `%#v` of Go does. Others would be shown with addresses, and stay JSON."""
    for error in field_errors:
        text_of_value = _go_text(error)
        yield error if text_of_value is None else replace(error, value=DisplayedValue(text_of_value))


def _go_text(error: FieldError) -> str | None:
    name, value = error.field.rpartition(".")[2], error.value
    if name == "labels" and (value is None or isinstance(value, dict)):
        return _map("string", value)
    if name == "partitions" and isinstance(value, dict):
        return _map("int32", value)
    if name == "podsToDelete" and isinstance(value, list):
        return f"[]string{{{', '.join(map(gotext.quote, value))}}}"
    if name == "selector" and isinstance(value, dict):
        return _label_selector(value)
    if name == "spec" and isinstance(value, list):
        return f"[]intstr.IntOrString{{{', '.join(map(show_int_or_string, value))}}}"
    if name == "readinessGates" and isinstance(value, list):
        gates = (
            f"v1.PodReadinessGate{{ConditionType:{gotext.quote(gate['conditionType'])}}}" for gate in value
        )
        return f"[]v1.PodReadinessGate{{{', '.join(gates)}}}" if value else "[]v1.PodReadinessGate(nil)"
    if name == "maxUnavailable" and "statefulSetTemplate" in error.field:
        # The rules of Kubernetes' StatefulSets
        is_struct = isinstance(value, str) or error.detail == "cannot be 0"
        return show_int_or_string(value) if is_struct else None
    return None


def show_int_or_string(value: IntOrString) -> str:
    kind, number, text = (0, value, "") if isinstance(value, int) else (1, 0, value)
    return f"intstr.IntOrString{{Type:{kind}, IntVal:{number}, StrVal:{gotext.quote(text)}}}"


def go_int_or_string(value: IntOrString | None) -> Any:
    """Return a value of a field error as Go prints the struct, and no value as it prints a pointer."""
    return "null" if value is None else DisplayedValue(show_int_or_string(value))


def _map(values: str, entries: Mapping[str, str | int] | None) -> str:
    if entries is None:
        return f"map[string]{values}(nil)"
    text_of_value = (
        f"{gotext.quote(key)}:{gotext.quote(value) if isinstance(value, str) else value}"
        for key, value in sorted(entries.items())
    )
    return f"map[string]{values}{{{', '.join(text_of_value)}}}"


def _label_selector(selector: ReadOnlyTree) -> str:
    requirements = selector.get("matchExpressions")
    kind = "[]v1.LabelSelectorRequirement"
    text_of_value = (
        f"{kind}(nil)" if requirements is None else f"{kind}{{{', '.join(map(_requirement, requirements))}}}"
    )
    return f"v1.LabelSelector{{MatchLabels:{_map('string', selector.get('matchLabels'))}, MatchExpressions:{text_of_value}}}"


def _requirement(requirement: ReadOnlyTree) -> str:
    values = requirement.get("values")
    text_of_value = (
        "[]string(nil)" if values is None else f"[]string{{{', '.join(map(gotext.quote, values))}}}"
    )
    key, operator = (gotext.quote(requirement.get(name, "")) for name in ("key", "operator"))
    return f"v1.LabelSelectorRequirement{{Key:{key}, Operator:{operator}, Values:{text_of_value}}}"
