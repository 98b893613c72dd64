"""Validation of updates through pods/resize, which change the CPU and memory of a running pod, and little else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD
from mockube.apiserver.kinds.common.checks import with_old_values
from mockube.apiserver.kinds.common.resource_names import CPU, MEMORY
from mockube.apiserver.kinds.common.validation_context import is_before

from . import validation
from .context import WINDOWS, os_of
from .lifecycle import ALWAYS, RESTART_CONTAINER
from .qos import older_qos_class, qos_class

_KINDS: Final = ("containers", "initContainers")
_MUTABLE: Final = "only cpu and memory resources are mutable"
_LISTS: Final = ("requests", "limits")


def check_resize(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    if ANNOTATION_MIRROR_POD in meta.annotations(old):
        return (errors.forbidden(validation.NOWHERE, "static pods cannot be resized"),)
    if os_of(validation.spec_of(old)) == WINDOWS:
        return (errors.forbidden(validation.NOWHERE, "windows pods cannot be resized"),)
    spec, before = validation.spec_of(new), validation.spec_of(old)
    field_errors = [
        *validation.check_changed_pod(new, old),
        *_check_service(new, old),
        *_check_spec(spec, before),
    ]
    return field_errors or _check_rest(spec, before)


def _check_service(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    status, class_of = old.get("status") or {}, older_qos_class if is_before("1.37") else qos_class
    if (status.get("qosClass") or class_of(old)) != class_of(new):
        new_class = (new.get("status") or {}).get("qosClass", "")
        yield errors.invalid(
            validation.SPEC, new_class, "Pod QOS Class may not change as a result of resizing"
        )
    if not _is_supported(status.get("containerStatuses", ())):
        yield errors.forbidden(validation.SPEC, "Pod running on node without support for resize")


def _is_supported(statuses: Sequence[ReadOnlyTree]) -> bool:
    """Return whether the kubelet supports resize: then it reports the resources of running containers."""
    running = (status for status in statuses if (status.get("state") or {}).get("running") is not None)
    first = next(running, None)
    return first is None or first.get("resources") is not None


def _check_spec(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    yield from _check_of_pod(spec, before)
    reordered = [error for kind in _KINDS for error in _check_order(spec, before, kind)]
    if reordered:
        yield from reordered
        return
    yield from _check_removed(spec, before, "initContainers")
    yield from _check_removed(spec, before, "containers")
    yield from _check_containers(spec, before)
    yield from _check_init_containers(spec, before)


def _check_rest(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    resized = (*_KINDS, "resources") if _has_resources(spec, before) else _KINDS
    if with_old_values(spec, before, *resized) != before:
        yield errors.forbidden(validation.SPEC, _MUTABLE)


# --- of the pod as a whole


def _has_resources(*specs: ReadOnlyTree) -> bool:
    return any((spec.get("resources") or {}).get(name) for spec in specs for name in _LISTS)


def _check_of_pod(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    resources, old_resources, path = (
        spec.get("resources"),
        before.get("resources"),
        validation.SPEC.child("resources"),
    )
    if not _has_resources(spec, before):
        return
    if resources is None:
        yield errors.forbidden(path, "pod-level resources cannot be removed")
        return
    for name in _LISTS:
        if _is_removed(resources, old_resources or {}, name):
            yield errors.forbidden(path.child(name), f"pod-level resource {name} cannot be removed")
    claims = {"claims": resources["claims"]} if "claims" in resources else {}
    if _with_old_amounts(resources, old_resources or {}) | claims != (old_resources or {}):
        yield errors.forbidden(validation.SPEC, "only cpu and memory resources are mutable at pod-level")


def _is_removed(resources: ReadOnlyTree, before: ReadOnlyTree, name: str) -> bool:
    return not (before.get(name) or {}).keys() <= (resources.get(name) or {}).keys()


def _with_old_amounts(resources: ReadOnlyTree, before: ReadOnlyTree) -> dict[str, Mapping[str, Any]]:
    """Return the requests and limits with the old amounts of CPU and memory."""
    amounts = {
        name: with_old_values(resources.get(name) or {}, before.get(name) or {}, CPU, MEMORY)
        for name in _LISTS
    }
    return {name: list_amounts for name, list_amounts in amounts.items() if list_amounts}


# --- of its containers


def _check_order(spec: ReadOnlyTree, before: ReadOnlyTree, kind: str) -> Iterator[FieldError]:
    containers, old_containers, path = (
        spec.get(kind) or (),
        before.get(kind) or (),
        validation.SPEC.child(kind),
    )
    if len(containers) != len(old_containers):
        yield errors.forbidden(path, f"{kind} may not be added or removed on resize")
        return
    for index, (container, old_container) in enumerate(zip(containers, old_containers, strict=True)):
        if container.get("name") != old_container.get("name"):
            detail = f"{kind} may not be renamed or reordered on resize"
            yield errors.forbidden(path.index(index).child("name"), detail)


def _pairs(
    spec: ReadOnlyTree, before: ReadOnlyTree, kind: str
) -> Iterator[tuple[ReadOnlyTree, ReadOnlyTree, Path]]:
    """Yield each container, the old one and the path."""
    pairs = zip(spec.get(kind) or (), before.get(kind) or (), strict=True)
    for index, (container, old_container) in enumerate(pairs):
        yield container, old_container, validation.SPEC.child(kind).index(index)


def _check_removed(spec: ReadOnlyTree, before: ReadOnlyTree, kind: str) -> Iterator[FieldError]:
    for container, old_container, path in _pairs(spec, before, kind):
        for name in _LISTS:
            if _is_removed(_resources(container), _resources(old_container), name):
                field_path = path.child("resources", name)
                yield errors.forbidden(field_path, f"resource {name} cannot be removed")


def _resources(container: ReadOnlyTree) -> ReadOnlyTree:
    return container.get("resources") or {}


def _is_only_resized(container: ReadOnlyTree, old_container: ReadOnlyTree) -> bool:
    """Return whether only resource amounts changed. Before 1.37, containers with claims cannot be resized."""
    amounts: ReadOnlyTree = _with_old_amounts(_resources(container), _resources(old_container))
    if "claims" in _resources(container) and not is_before("1.37"):
        amounts = {**amounts, "claims": _resources(container)["claims"]}
    return (
        amounts == _resources(old_container)
        and with_old_values(container, old_container, "resources") == old_container
    )


def _check_containers(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    for container, old_container, _ in _pairs(spec, before, "containers"):
        if not _is_only_resized(container, old_container):
            yield errors.forbidden(validation.SPEC, _MUTABLE)


def _check_init_containers(spec: ReadOnlyTree, before: ReadOnlyTree) -> Iterator[FieldError]:
    for container, old_container, path in _pairs(spec, before, "initContainers"):
        if not _is_only_resized(container, old_container):
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            yield errors.forbidden(path, detail)
        if container != old_container and container.get("restartPolicy") != ALWAYS:
            yield from _check_not_restarted(container, path)


def _check_not_restarted(container: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
    return [
        errors.forbidden(path, detail)
        for policy in container.get("resizePolicy", ())
        if policy.get("restartPolicy") == RESTART_CONTAINER
    ]
