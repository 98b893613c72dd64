"""Validation of containers, init containers and ephemeral containers, and of their ports."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.addresses import check_protocol
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.core.volumes.sources import PULL_POLICIES

from . import lifecycle
from .context import PodContext
from .env import check_env, check_env_from
from .resources import check_requirements
from .security import check_security_context
from .volumes import check_devices, check_mounts

_CHECK_PORT: Final = checks.all_of(
    checks.require("containerPort", checks.port_number),
    checks.optional("hostPort", checks.port_number),
    checks.require("protocol", check_protocol),
)


def check_ports(ports: Iterable[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports or ()):
        name, port_path = port.get("name"), path.index(index)
        if name:
            problems = [*checks.report(names.check_port_name)(name, port_path.child("name"))]
            if not problems and name in seen:
                problems = [errors.duplicate(port_path.child("name"), name)]
            seen.add(name)
            yield from problems
        yield from _CHECK_PORT(port, port_path)


def check_host_ports(containers: Iterable[ReadOnlyTree], path: Path) -> Iterator[FieldError]:
    """Check that no two containers use the same host port."""
    seen: set[str] = set()
    for container_index, container in enumerate(containers):
        for index, port in enumerate(container.get("ports", ())):
            if not port.get("hostPort"):
                continue
            port_key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if port_key in seen:
                field_path = path.index(container_index).child("ports").index(index).child("hostPort")
                yield errors.duplicate(field_path, port_key)
            seen.add(port_key)


def check_host_network_ports(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    """Check that host ports equal container ports in the host network; a template may omit the host ports."""
    if not pod_context.host_network:
        return
    for container_index, container in enumerate(pod_context.spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports", ())):
            host_port = port.get("hostPort", 0)
            if (pod_context.in_pod or host_port) and host_port != port.get("containerPort", 0):
                field_path = (
                    path.child("containers")
                    .index(container_index)
                    .child("ports")
                    .index(index)
                    .child("hostPort")
                )
                yield errors.invalid(
                    field_path, host_port, "must match `containerPort` when `hostNetwork` is true"
                )


_NAME_TO_MESSAGES: Final = checks.all_of(
    checks.require("name", checks.report(names.check_dns1123_label)),
    checks.require("image"),
    checks.require("terminationMessagePolicy", checks.one_of("File", "FallbackToLogsOnError")),
    checks.field("ports", check_ports),
    checks.field("env", check_env),
    checks.field("envFrom", check_env_from),
)
_PULL_POLICY: Final = checks.require("imagePullPolicy", checks.one_of(*PULL_POLICIES))


def _check_common(container: ReadOnlyTree, path: Path, pod_context: PodContext) -> Iterator[FieldError]:
    """Check the fields that all types of containers share."""
    yield from _NAME_TO_MESSAGES(container, path)
    yield from check_mounts(container, path, pod_context)
    yield from check_devices(container, path, pod_context)
    yield from _PULL_POLICY(container, path)
    yield from check_requirements(container.get("resources") or {}, path.child("resources"), pod_context)
    yield from lifecycle.check_resize_policies(container, path, pod_context)
    yield from check_security_context(container, path, pod_context)


def _check_unique_name(name: str, path: Path, used_names: set[str]) -> Iterator[FieldError]:
    """Check that a name is unique; a missing name is reported elsewhere."""
    if name in used_names:
        yield errors.duplicate(path.child("name"), name)
    used_names.add(name)


def _containers_of(pod_context: PodContext, kind: str) -> Sequence[ReadOnlyTree]:
    return pod_context.spec.get(kind) or ()


# --- containers


def check_containers(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    path, containers = path.child("containers"), _containers_of(pod_context, "containers")
    if not containers:
        yield errors.required(path)
        return
    used_names: set[str] = set()
    for index, container in enumerate(containers):
        container_path = path.index(index)
        yield from _check_common(container, container_path, pod_context)
        yield from _check_unique_name(container.get("name", ""), container_path, used_names)
        yield from lifecycle.check_lifecycle(container, container_path, pod_context)
        yield from lifecycle.check_probes(container, container_path)
        yield from lifecycle.check_restart_policy(container, container_path)
    yield from check_host_ports(containers, path)


# --- init containers

_NOT_OF_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"


def _check_ends(container: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check that an init container which runs to completion has no lifecycle and no probes."""
    for field_name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
        if container.get(field_name) is not None:
            yield errors.forbidden(path.child(field_name), _NOT_OF_SIDECARS)


def _check_resizes(container: ReadOnlyTree, path: Path, pod_context: PodContext) -> Iterator[FieldError]:
    if pod_context.options.restarting_resizes:
        return
    for index, policy in enumerate(container.get("resizePolicy", ())):
        if policy.get("restartPolicy") == lifecycle.RESTART_CONTAINER:
            field_path = path.child("resizePolicy").index(index).child("restartPolicy")
            problem = f"must not be set to '{lifecycle.RESTART_CONTAINER}' for non-sidecar initContainers"
            yield errors.invalid(field_path, lifecycle.RESTART_CONTAINER, problem)


def check_init_containers(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    """Check the init containers.

    Several may use the same host port, because they run one after another; sidecars keep running.
    """
    path = path.child("initContainers")
    used_names = {container.get("name", "") for container in _containers_of(pod_context, "containers")}
    for index, container in enumerate(_containers_of(pod_context, "initContainers")):
        container_path, is_sidecar = path.index(index), container.get("restartPolicy") == lifecycle.ALWAYS
        yield from _check_common(container, container_path, pod_context)
        yield from lifecycle.check_init_restart_policy(container, container_path)
        name = container.get("name", "")
        if name or name in used_names:
            yield from _check_unique_name(name, container_path, used_names)
        yield from check_host_ports((container,), path)
        if is_sidecar:
            yield from lifecycle.check_lifecycle(container, container_path, pod_context)
            yield from lifecycle.check_probes(container, container_path)
        else:
            yield from _check_ends(container, container_path)
            yield from _check_resizes(container, container_path, pod_context)


# --- ephemeral containers

_NOT_EPHEMERAL: Final = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe", "readinessProbe",
    "startupProbe", "lifecycle",
)  # fmt: skip
_REFUSED: Final = checks.refuse_any("cannot be set for an Ephemeral Container")


def check_ephemeral_containers(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    """Check the ephemeral containers. They are for debugging, so many fields of containers are refused."""
    path = path.child("ephemeralContainers")
    others = {
        container.get("name", "")
        for kind in ("containers", "initContainers")
        for container in _containers_of(pod_context, kind)
    }
    used_names = {*others}
    for index, container in enumerate(_containers_of(pod_context, "ephemeralContainers")):
        container_path, target = path.index(index), container.get("targetContainerName")
        yield from _check_common(container, container_path, pod_context)
        yield from check_trimmed_image(container, container_path)
        yield from _check_unique_name(container.get("name", ""), container_path, used_names)
        if target and target not in others:
            yield errors.not_found(container_path.child("targetContainerName"), target)
        for field_name in _NOT_EPHEMERAL:
            value = container.get(field_name)
            if value or (value is not None and field_name != "resources"):
                yield from _REFUSED(value, container_path.child(field_name))
        for mount_index, mount in enumerate(container.get("volumeMounts", ())):
            for field_name in ("subPath", "subPathExpr"):
                if mount.get(field_name):
                    mount_path = container_path.child("volumeMounts").index(mount_index).child(field_name)
                    yield from _REFUSED(mount[field_name], mount_path)


# --- only in pods

check_trimmed_image: Final[Check] = checks.field(
    "image",
    checks.trimmed,
    absent="",
)
"""Check that the image is trimmed. Templates are not checked: a blank image there may be a placeholder."""
