"""Node."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, Final

from mockube.apimachinery import conditions, errors, gotext, meta, names, wellknown
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import STATUS, Resource, Subresource
from mockube.apiserver.kinds.common import ages, cells, checks
from mockube.apiserver.kinds.common.address_warnings import cidrs_warnings
from mockube.apiserver.kinds.common.addresses import check_cidr, is_dual_stack
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.objectmeta import check_label_name
from mockube.apiserver.kinds.common.resource_names import check_amount
from mockube.apiserver.kinds.common.validation import CREATE_AND_CHANGE, Validation, get_struct
from mockube.apiserver.kinds.common.validation_context import is_before
from mockube.apiserver.kinds.common.warnings import on_create_and_update
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, DisabledFields, Gate, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

from .pod.defaults import agree_with_list

# --- taints


def _check_taint_value(value: str, path: Path) -> Iterable[FieldError]:
    problems = names.check_label_value(value)
    return (errors.invalid(path, value, ";".join(problems)),) if problems else ()


_TAINT: Final[Check] = checks.all_of(
    checks.field("key", check_label_name, absent=""),
    checks.optional("value", _check_taint_value),
    checks.require("effect", checks.one_of("NoSchedule", "PreferNoSchedule", "NoExecute")),
)

_TAINTS: Final = ROOT.child("metadata", "taints")
"""The path of taints in upstream's errors."""


def _check_taints(taints: Sequence[ReadOnlyTree] | None) -> Iterator[FieldError]:
    seen = set()
    for index, taint in enumerate(taints or ()):
        yield from _TAINT(taint, _TAINTS.index(index))
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            yield errors.duplicate(_TAINTS.index(index), internal("core.Taint", taint), detail)
        seen.add((key, effect))


# --- resources and addresses


def _check_amounts(amounts: ReadOnlyTree | None, path: Path) -> Iterator[FieldError]:
    for name, amount in (amounts or {}).items():
        yield from check_amount(name, amount, path.child(name))


_RESOURCES: Final = checks.all_of(
    checks.field("capacity", _check_amounts), checks.field("allocatable", _check_amounts)
)


def _check_resources(node: ReadOnlyTree) -> Iterable[FieldError]:
    return _RESOURCES(get_struct(node, "status"), ROOT.child("status"))


_FEATURE_NAME: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")


def _feature_problem(name: str) -> str:
    if len(name) > 253:
        return f"invalid feature name {gotext.quote(name)}: must be no more than 253 characters"
    if _FEATURE_NAME.fullmatch(name):
        return ""
    return (
        f"invalid feature name {gotext.quote(name)}: must start with an UpperCamelCase segment, with subsequent"
        " segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric"
        " characters and slashes"
    )


def _check_features(node: ReadOnlyTree) -> Iterator[FieldError]:
    features = get_struct(node, "status").get("declaredFeatures") or ()
    path = ROOT.child("status", "declaredFeatures")
    for index, (feature, previous) in enumerate(zip(features, ("", *features), strict=False)):
        if index and feature == previous:
            yield errors.duplicate(path.index(index), feature)
        elif index and feature < previous:
            yield errors.invalid(path.index(index), feature, "list must be sorted alphabetically")
        if problem := _feature_problem(feature):
            yield errors.invalid(path.index(index), feature, problem)


_POD_CIDRS: Final = ROOT.child("spec", "podCIDRs")


def _check_pod_cidrs(networks: Sequence[str] | None) -> Iterator[FieldError]:
    errors_by_cidr = [
        [*check_cidr(network, _POD_CIDRS.index(index))] for index, network in enumerate(networks or ())
    ]
    yield from chain.from_iterable(errors_by_cidr)
    if not networks or len(networks) == 1:
        return
    first = next((index for index, cidr_errors in enumerate(errors_by_cidr) if cidr_errors), None)
    if first is not None:
        parse_error = f"invalid CIDR[{first}]: <nil> (invalid CIDR address: {networks[first]})"
        problem = f"invalid PodCIDRs. failed to check with dual stack with error:{parse_error}"
        yield errors.internal(_POD_CIDRS, problem)
    if (
        first is not None
        or len(networks) > 2
        or not is_dual_stack([network.partition("/")[0] for network in networks])
    ):
        yield errors.invalid(_POD_CIDRS, networks, "may specify no more than one CIDR for each IP family")


def _create(node: ReadOnlyTree) -> Iterator[FieldError]:
    spec = get_struct(node, "spec")
    yield from _check_taints(spec.get("taints"))
    yield from _check_resources(node)
    yield from _check_features(node)
    yield from _check_pod_cidrs(spec.get("podCIDRs"))


# --- changes

_PROVIDER_ID: Final = ROOT.child("spec", "providerID")


def _check_set_once(spec: ReadOnlyTree, old_spec: ReadOnlyTree) -> Iterator[FieldError]:
    """Check the fields of a node that are set once."""
    if old_spec.get("podCIDRs") and old_spec["podCIDRs"] != spec.get("podCIDRs"):
        detail = 'node updates may not change podCIDR except from "" to valid'
        yield errors.forbidden(_POD_CIDRS, detail)
    provider_id = spec.get("providerID")
    if old_spec.get("providerID") and old_spec["providerID"] != provider_id:
        if is_before("1.37"):
            detail = 'node updates may not change providerID except from "" to valid'
            yield errors.forbidden(_PROVIDER_ID, detail)
        else:
            change = "modified" if provider_id else "cleared"
            yield errors.invalid(_PROVIDER_ID, None, f"field cannot be {change} once set")


def _check_addresses(addresses: Sequence[ReadOnlyTree] | None) -> Iterator[FieldError]:
    seen = set()
    for index, address in enumerate(addresses or ()):
        key = address.get("type", ""), address.get("address", "")
        if key in seen:
            path = ROOT.child("status", "addresses").index(index)
            yield errors.duplicate(path, internal("core.NodeAddress", address))
        seen.add(key)


def _update_status(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    spec, old_spec = get_struct(new, "spec"), get_struct(old, "spec")
    yield from _check_resources(new)
    yield from _check_features(new)
    yield from _check_addresses(get_struct(new, "status").get("addresses"))
    yield from _check_set_once(spec, old_spec)
    yield from _check_taints(spec.get("taints"))
    if spec.get("externalID", "") != old_spec.get("externalID", ""):
        yield errors.forbidden(ROOT.child("spec", "externalID"), "may not be updated")


# --- strategy, defaults and warnings


def _prepare_create(node: Tree, _request: StrategyContext) -> None:
    _remove_dynamic_config(node)


def _prepare_update(new: Tree, old: Tree, _request: StrategyContext) -> None:
    if "configSource" not in old.get("spec", {}):
        _remove_dynamic_config(new)


def _remove_dynamic_config(node: Tree) -> None:
    """Remove the fields of the dynamic kubelet configuration, a feature that Kubernetes has removed."""
    for section, name in (("spec", "configSource"), ("status", "config")):
        if name in node.get(section, {}):
            node[section] = {key: value for key, value in node[section].items() if key != name}


def _default_allocatable(status: Tree) -> None:
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def _warn(node: ReadOnlyTree) -> Iterator[str]:
    spec = node.get("spec") or {}
    if spec.get("configSource") is not None:
        yield "spec.configSource: the feature is removed"
    if spec.get("externalID"):
        yield "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    yield from cidrs_warnings(spec.get("podCIDRs"), ROOT.child("spec", "podCIDRs"))


# --- columns


_LABEL_ROLE: Final = "kubernetes.io/role"


def _cells(node: Tree, now: datetime) -> list[Any]:
    info = cells.part(node, "status", "nodeInfo")
    return [
        meta.name(node),
        _status(node),
        ",".join(_roles(node)) or "<none>",
        ages.age(node, now),
        cells.text(info, "kubeletVersion"),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        cells.text(info, "osImage") or "<unknown>",
        _kernel(info),
        cells.text(info, "containerRuntimeVersion") or "<unknown>",
    ]


def _status(node: Tree) -> str:
    ready = conditions.get(node, wellknown.CONDITION_READY)
    status = "Unknown" if ready is None else "Ready" if cells.text(ready, "status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if cells.flag(node, "spec", "unschedulable") else status


def _roles(node: Tree) -> list[str]:
    labels = meta.labels(node)
    prefix = wellknown.LABEL_NODE_ROLE_PREFIX
    named = {label.removeprefix(prefix) for label in labels if label.startswith(prefix)}
    return sorted({*named, labels.get(_LABEL_ROLE) or ""} - {""})


def _address(node: Tree, address_type: str) -> str:
    addresses = cells.items(node, "status", "addresses")
    matches = (address for address in addresses if cells.text(address, "type") == address_type)
    return cells.text(next(matches, None), "address", default="<none>")


def _kernel(info: Any) -> str:
    version, architecture = cells.text(info, "kernelVersion") or "<unknown>", cells.text(info, "architecture")
    return f"{version} ({architecture})" if architecture else version


KIND: Final = Kind(
    resource=Resource(
        group="",
        version="v1",
        name="nodes",
        kind="Node",
        namespaced=False,
        short_names=("no",),
        stored_at="minions",
        selectable=(selectable("spec.unschedulable", absent="false"),),
        subresources=(
            Subresource(
                name="proxy",
                kind="NodeProxyOptions",
                verbs=("create", "delete", "get", "patch", "update"),
            ),
            STATUS,
        ),
    ),
    strategy=Strategy(
        cleared=(),
        disabled=DisabledFields((Gate(("spec.podPreemptionPolicy",)),)),
        prepare_create=_prepare_create,
        prepare_update={MAIN: _prepare_update, "status": _prepare_update},
    ),
    validation=Validation(
        repeated_checks=CREATE_AND_CHANGE,
        create=_create,
        update=_update_status,
        subresources={"status": _update_status},
    ),
    warnings=on_create_and_update(_warn),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Status"),
            Column(name="Roles"),
            AGE_COLUMN,
            Column(name="Version"),
            Column(name="Internal-IP", priority=1),
            Column(name="External-IP", priority=1),
            Column(name="OS-Image", priority=1),
            Column(name="Kernel-Version", priority=1),
            Column(name="Container-Runtime", priority=1),
        ),
        cells=_cells,
    ),
    defaults=defaults_table("io.k8s.api.core.v1", {"NodeStatus": _default_allocatable}),
    internal_changes=(partial(agree_with_list, "spec", "podCIDR", "podCIDRs", ""),),
)
