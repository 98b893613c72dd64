"""The rules for pools, which are those of the API server, and what a pool has by default. Pure."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from mockube.apimachinery import names, quantity, resource_names, wellknown
from mockube.apimachinery.quantity import Quantity, QuantityError
from mockube.component_base.suggestions import did_you_mean

from .document import Amounts, ImageDocument, PoolDocument, TaintDocument
from .pool import (
    AMD64,
    DEFAULT_CAPACITY,
    DEFAULT_POOL,
    MAX_SIMULATED_NODES,
    NODE_POOL,
    NodePool,
    NodePools,
    PoolError,
    check_total,
    quote_short,
)

GPU: Final = "gpu"
"""What `nvidia.com/gpu` may be called."""
NVIDIA_GPU: Final = "nvidia.com/gpu"
_GPU_PRESENT: Final = "nvidia.com/gpu.present"
"""The label that NVIDIA's GPU operator sets on nodes with GPUs, and by which its pods are scheduled."""
_MAX_POOL_NAME: Final = names.LABEL_MAX_LENGTH - len(f"-{MAX_SIMULATED_NODES}")
"""The name of a node is also the value of a label."""
_MAX_ANNOTATIONS_BYTES: Final = 1 << 18
ARCHITECTURES: Final = (AMD64, "arm64", "arm", "386", "ppc64le", "riscv64", "s390x")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
RESOURCES: Final = ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "hugepages-1Gi", GPU)


def complete(documents: Sequence[PoolDocument], text: str, *, path: Path | None = None) -> NodePools:
    """Return the pools of documents; raise PoolError if one breaks a rule. They were read from a text, or from a file with it."""
    pools = []
    for document, name in zip(documents, _names_of(documents), strict=True):
        try:
            pools.append(_pool_of(document, name))
        except PoolError as error:
            raise PoolError(f"pool {quote_short(name)}: {error}") from error
    check_total(sum(pool.count for pool in pools))
    return NodePools(
        pools=tuple(pool for pool in pools if pool.count),
        text=text if path is None else str(path.absolute()),
        content=text,
    )


def _names_of(documents: Sequence[PoolDocument]) -> list[str]:
    """Return the pools' names: those that are set, or else instance types, `node` for one pool, and the pool's position."""
    used_names = {document.name for document in documents}
    pool_names = []
    for position, document in enumerate(documents, 1):
        name = document.name or _name_of_type(document.instance_type)
        if not document.name and name in used_names:
            name = f"pool-{position}"
        used_names.add(name)
        pool_names.append(name)
    repeated = [name for name, count in Counter(pool_names).items() if count > 1]
    if repeated:
        raise PoolError(f"two pools have the name {quote_short(repeated[0])}")
    return pool_names


def _name_of_type(instance_type: str) -> str:
    """Return an instance type as the beginning of node names, as standard-d4s-v3 of Standard_D4s_v3."""
    return re.sub("[^a-z0-9.-]+", "-", instance_type.lower()).strip("-.") or DEFAULT_POOL


def _pool_of(document: PoolDocument, name: str) -> NodePool:
    _check("name", name, names.check_dns1123_subdomain)
    if len(name) > _MAX_POOL_NAME:
        raise PoolError(f"name: must be no more than {_MAX_POOL_NAME} characters")
    if document.count < 0:
        raise PoolError(f"count: {document.count} is negative")
    if name == DEFAULT_POOL and msgspec.structs.replace(document, count=0, name="") == _WITHOUT_SETTINGS:
        return NodePool(count=document.count)
    capacity = {**DEFAULT_CAPACITY, **_amounts(document.capacity, "capacity")}
    _check_annotations(document.annotations)
    _check_architecture(document.architecture)
    return NodePool(
        name=name,
        count=document.count,
        has_settings=True,
        zones=tuple(_label_values(document.zones, "zones")),
        labels=_labels(document, name, capacity),
        annotations=document.annotations,
        taints=tuple(_taints(document.taints)),
        capacity=capacity,
        allocatable=_allocatable(document, capacity),
        architecture=document.architecture,
        os_image=document.os_image,
        images=tuple(_images(document.images)),
        unschedulable=document.unschedulable,
    )


_WITHOUT_SETTINGS: Final = PoolDocument(count=0)


def _check(field: str, value: str, check: Callable[[str], list[str]]) -> str:
    """Return a value; raise PoolError if a rule of the API server refuses it."""
    problems = check(value)
    if problems:
        raise PoolError(f"{field}: {quote_short(value)}: {problems[0]}")
    return value


def _label_values(values: Iterable[str], field: str) -> Iterator[str]:
    for value in values:
        if not value:
            raise PoolError(f"{field}: a value is empty")
        yield _check(field, value, names.check_label_value)


def _check_architecture(architecture: str) -> None:
    if architecture not in ARCHITECTURES:
        hint = did_you_mean(architecture, ARCHITECTURES) or f": one of {', '.join(ARCHITECTURES)}"
        raise PoolError(f"architecture: unknown {quote_short(architecture)}{hint}")


def _labels(document: PoolDocument, name: str, capacity: Mapping[str, str]) -> Mapping[str, str]:
    roles = _label_values(document.roles, "roles")
    well_known = {
        NODE_POOL: name,
        wellknown.LABEL_INSTANCE_TYPE: _check(
            "instanceType", document.instance_type, names.check_label_value
        ),
        wellknown.LABEL_REGION: _check("region", document.region, names.check_label_value),
        _GPU_PRESENT: "true" if quantity.parse(capacity.get(NVIDIA_GPU, "0")) else "",
    }
    labels = {key: value for key, value in well_known.items() if value}
    labels |= {f"{wellknown.LABEL_NODE_ROLE_PREFIX}{role}": "" for role in roles}
    for key, value in document.labels.items():
        _check("labels", key, names.check_label_key)
        _check("labels", value, names.check_label_value)
        if key in _OWN_LABELS:
            raise PoolError(f"labels: {key} is set by {_OWN_LABELS[key]}")
    return {**labels, **document.labels}


_OWN_LABELS: Final = {
    NODE_POOL: "name",
    wellknown.LABEL_HOSTNAME: "name",
    wellknown.LABEL_ZONE: "zones",
    wellknown.LABEL_ARCH: "architecture",
    f"beta.{wellknown.LABEL_ARCH}": "architecture",
}
"""Labels that other fields set."""


def _check_annotations(annotations: Mapping[str, str]) -> None:
    for key in annotations:
        _check("annotations", key, lambda key: names.check_label_key(key.lower()))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS_BYTES:
        raise PoolError(f"annotations: they have more than {_MAX_ANNOTATIONS_BYTES} bytes")


def _taints(taints: Sequence[TaintDocument]) -> Iterator[Mapping[str, str]]:
    seen = set()
    for taint in taints:
        _check("taints", taint.key, names.check_label_key)
        _check("taints", taint.value, names.check_label_value)
        if taint.effect not in EFFECTS:
            hint = did_you_mean(taint.effect, EFFECTS) or f": one of {', '.join(EFFECTS)}"
            raise PoolError(f"taints: unknown effect {quote_short(taint.effect)}{hint}")
        if (taint.key, taint.effect) in seen:
            raise PoolError(f"taints: {taint.key}:{taint.effect} is set twice")
        seen.add((taint.key, taint.effect))
        yield {name: value for name, value in msgspec.to_builtins(taint).items() if value}


def _images(images: Sequence[ImageDocument]) -> Iterator[Mapping[str, Any]]:
    for image in images:
        if not image.names or not all(image.names):
            raise PoolError("images: each must have a name")
        if image.size_bytes < 0:
            raise PoolError(f"images: sizeBytes: {image.size_bytes} is negative")
        yield {"names": [*image.names], "sizeBytes": image.size_bytes}


# --- resources


def _amounts(raw_amounts: Amounts, field: str) -> dict[str, str]:
    """Return amounts by the full names of their resources."""
    amounts: dict[str, str] = {}
    for key, value in raw_amounts.items():
        name = NVIDIA_GPU if key == GPU else key
        if name in amounts:
            raise PoolError(f"{field}: {GPU} is {NVIDIA_GPU}, which is set, too")
        _check_resource(name, field)
        amounts[name] = str(_amount(name, value, field))
    return amounts


def _check_resource(name: str, field: str) -> None:
    if "/" in name:
        if not resource_names.is_extended(name):
            raise PoolError(
                f"{field}: {quote_short(name)} is not the name of an extended resource{_label_hint(name)}"
            )
    elif name.startswith(resource_names.HUGE_PAGES):
        if not _page_size(name):
            raise PoolError(
                f"{field}: {quote_short(name)} does not end with a page size, as hugepages-2Mi does"
            )
    elif name not in RESOURCES:
        raise PoolError(f"{field}: unknown resource {quote_short(name)}{did_you_mean(name, RESOURCES)}")


def _label_hint(name: str) -> str:
    return "; a label is set by label=KEY=VALUE" if resource_names.is_native(name) else ""


def _page_size(name: str) -> Quantity | None:
    try:
        size = quantity.parse(name.removeprefix(resource_names.HUGE_PAGES))
    except QuantityError:
        return None
    return size if size > quantity.ZERO and size.is_whole else None


def _amount(name: str, value: str | float, field: str) -> Quantity:
    """Check an amount by the rules for the resources of a node, and for huge pages."""
    try:
        amount = quantity.from_json(value)
    except QuantityError as error:
        hint = "; commas separate settings and pools" if re.search("[:; ]", str(value)) else ""
        raise PoolError(f"{field}: {name}: {quote_short(str(value))}: {error}{hint}") from error
    if amount < quantity.ZERO:
        raise PoolError(f"{field}: {name}: {quote_short(str(value))} is negative")
    if (name == "pods" or resource_names.is_extended(name)) and not amount.is_whole:
        raise PoolError(f"{field}: {name}: {quote_short(str(value))}: must be an integer")
    page = _page_size(name) if name.startswith(resource_names.HUGE_PAGES) else None
    if page is not None and amount.scaled_value() % page.scaled_value():
        raise PoolError(f"{field}: {name}: {quote_short(str(value))} is not a multiple of the page size")
    return amount


def _allocatable(document: PoolDocument, capacity: Mapping[str, str]) -> Mapping[str, str]:
    """Return what pods can use: the capacity without what is reserved and, of the memory, without huge pages."""
    reserved, fixed = _amounts(document.reserved, "reserved"), _amounts(document.allocatable, "allocatable")
    for field, amounts in (("reserved", reserved), ("allocatable", fixed)):
        for name, amount in amounts.items():
            if quantity.parse(amount) > quantity.parse(capacity.get(name, "0")):
                raise PoolError(
                    f"{field}: {name}: {amount} is more than the capacity, {capacity.get(name, '0')}"
                )
    if both := reserved.keys() & fixed.keys():
        raise PoolError(f"{min(both)} is both in reserved and in allocatable: set one of them")
    rest = {name: quantity.parse(amount) for name, amount in capacity.items()}
    for name, amount in reserved.items():
        rest[name] -= quantity.parse(amount)
    for name, amount in capacity.items():
        if name.startswith(resource_names.HUGE_PAGES):
            rest["memory"] -= quantity.parse(amount)
    if rest["memory"] < quantity.ZERO and "memory" not in fixed:
        raise PoolError("capacity: huge pages and reserved memory are more than memory")
    return {**{name: str(amount) for name, amount in rest.items()}, **fixed}
