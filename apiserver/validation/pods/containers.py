"""The containers of a pod: those that run, those that prepare it, and those added to look into it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.pods.env import check_env, check_env_from
from apiserver.validation.pods.mounts import check_devices, check_mounts
from apiserver.validation.pods.ports import check_host_ports, check_ports
from apiserver.validation.pods.probes import check_lifecycle, check_probes
from apiserver.validation.pods.resources import check_requirements
from apiserver.validation.pods.restarts import (
    ALWAYS,
    RESTART_CONTAINER,
    check_init_restart_policy,
    check_resize_policies,
    check_restart_policy,
)
from apiserver.validation.pods.security import check_security_context
from apiserver.validation.pods.surroundings import Surroundings
from apiserver.validation.rules import Check, Tree, every, field, must, one_of, refused, required, valid
from apiserver.validation.volumes.sources import PULL_POLICIES

_NAME_TO_MESSAGES: Final = every(
    required("name", valid(names.check_dns1123_label)),
    required("image"),
    required("terminationMessagePolicy", one_of("File", "FallbackToLogsOnError")),
    field("ports", check_ports),
    field("env", check_env),
    field("envFrom", check_env_from),
)
_PULL_POLICY: Final = required("imagePullPolicy", one_of(*PULL_POLICIES))


def _check_common(container: Tree, path: Path, around: Surroundings) -> Iterator[FieldError]:
    """What is the same for all."""
    yield from _NAME_TO_MESSAGES(container, path)
    yield from check_mounts(container, path, around)
    yield from check_devices(container, path, around)
    yield from _PULL_POLICY(container, path)
    yield from check_requirements(container.get("resources") or {}, path.child("resources"), around)
    yield from check_resize_policies(container, path, around)
    yield from check_security_context(container, path, around)


def _check_taken(name: str, path: Path, taken: set[str]) -> Iterator[FieldError]:
    """Names are unique; a name that is missing is told of elsewhere."""
    if name in taken:
        yield errors.duplicate(path.child("name"), name)
    taken.add(name)


def _of(around: Surroundings, kind: str) -> Sequence[Tree]:
    return around.spec.get(kind) or ()


# --- containers


def check_containers(around: Surroundings, path: Path) -> Iterator[FieldError]:
    path, containers = path.child("containers"), _of(around, "containers")
    if not containers:
        yield errors.required(path)
        return
    taken: set[str] = set()
    for index, container in enumerate(containers):
        at = path.index(index)
        yield from _check_common(container, at, around)
        yield from _check_taken(container.get("name", ""), at, taken)
        yield from check_lifecycle(container, at, around)
        yield from check_probes(container, at)
        yield from check_restart_policy(container, at)
    yield from check_host_ports(containers, path)


# --- init containers

_NOT_OF_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"


def _check_ends(container: Tree, path: Path) -> Iterator[FieldError]:
    """What ends before the others begin needs no looking after."""
    for field_name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(field_name) is not None:
            yield errors.forbidden(path.child(field_name), _NOT_OF_SIDECARS)


def _check_resizes(container: Tree, path: Path, around: Surroundings) -> Iterator[FieldError]:
    if around.leniency.restarting_resizes:
        return
    for index, policy in enumerate(container.get("resizePolicy", ())):
        if policy.get("restartPolicy") == RESTART_CONTAINER:
            at = path.child("resizePolicy").index(index).child("restartPolicy")
            problem = f"must not be set to '{RESTART_CONTAINER}' for non-sidecar initContainers"
            yield errors.invalid(at, RESTART_CONTAINER, problem)


def check_init_containers(around: Surroundings, path: Path) -> Iterator[FieldError]:
    """They run one after another, so ports of the host may be given to several; one that always restarts runs on."""
    path = path.child("initContainers")
    taken = {container.get("name", "") for container in _of(around, "containers")}
    for index, container in enumerate(_of(around, "initContainers")):
        at, is_sidecar = path.index(index), container.get("restartPolicy") == ALWAYS
        yield from _check_common(container, at, around)
        yield from check_init_restart_policy(container, at)
        name = container.get("name", "")
        if name or name in taken:
            yield from _check_taken(name, at, taken)
        yield from check_host_ports((container,), path)
        if is_sidecar:
            yield from check_lifecycle(container, at, around)
            yield from check_probes(container, at)
        else:
            yield from _check_ends(container, at)
            yield from _check_resizes(container, at, around)


# --- ephemeral containers

_NOT_EPHEMERAL: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
_REFUSED: Final = refused("cannot be set for an Ephemeral Container")


def check_ephemeral_containers(around: Surroundings, path: Path) -> Iterator[FieldError]:
    """They are for looking into a pod, so nothing of it may depend on them."""
    path = path.child("ephemeralContainers")
    others = {
        container.get("name", "")
        for kind in ("containers", "initContainers")
        for container in _of(around, kind)
    }
    taken = {*others}
    for index, container in enumerate(_of(around, "ephemeralContainers")):
        at, target = path.index(index), container.get("targetContainerName")
        yield from _check_common(container, at, around)
        yield from check_trimmed_image(container, at)
        yield from _check_taken(container.get("name", ""), at, taken)
        if target and target not in others:
            yield errors.not_found(at.child("targetContainerName"), target)
        for field_name in _NOT_EPHEMERAL:
            value = container.get(field_name)
            if value or (value is not None and field_name != "resources"):
                yield from _REFUSED(value, at.child(field_name))
        for place, mount in enumerate(container.get("volumeMounts", ())):
            for field_name in ("subPath", "subPathExpr"):
                if mount.get(field_name):
                    of_mount = at.child("volumeMounts").index(place).child(field_name)
                    yield from _REFUSED(mount[field_name], of_mount)


# --- only in pods

check_trimmed_image: Final[Check] = field(
    "image",
    must(lambda image: image == image.strip(), "must not have leading or trailing whitespace"),
    absent="",
)
"""In templates a space may stand for an image that something else fills in."""


def check_trimmed_images(spec: Tree, path: Path) -> Iterable[FieldError]:
    return [
        error
        for kind in ("containers", "initContainers")
        for index, container in enumerate(spec.get(kind) or ())
        for error in check_trimmed_image(container, path.child(kind).index(index))
    ]
