"""Validation of security contexts, seccomp and AppArmor profiles, and sysctls."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.pods import dotted_sysctl
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import (
    all_of,
    between,
    each_item,
    field,
    max_bytes,
    one_of,
    pointer,
)
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation_context import forbids_privileged, is_before
from mockube.apiserver.kinds.core.volumes.projected import check_descending

from .context import WINDOWS, PodContext, containers_of, os_of
from .windows import FORBIDDEN, check_windows_options

_MAX_NAME_LENGTH: Final = 253
_SEGMENT: Final = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"({_SEGMENT}[\./])*{_SEGMENT}")

_IPC_NAMES: Final = frozenset(
    {
        "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
        "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
    }
)  # fmt: skip
_HOST_FIELDS: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("hostNetwork", lambda name: name.startswith("net.")),
    ("hostIPC", lambda name: name in _IPC_NAMES or name.startswith("fs.mqueue.")),
)
"""The fields that share a namespace with the host, each with a function that recognizes sysctls of that namespace."""


def check_sysctls(
    spec: ReadOnlyTree, sysctls: Iterable[ReadOnlyTree], path: Path, *, allow_host: bool
) -> Iterator[FieldError]:
    """Check sysctls; if `allow_host`, those of a namespace that is shared with the host are allowed."""
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        name, field_path = sysctl.get("name", ""), path.index(index).child("name")
        yield from _check_name(name, field_path, seen)
        if not allow_host:
            yield from check_host_sysctl(spec, name, field_path)
        seen.add(name)


def _check_name(name: str, path: Path, seen: set[str]) -> Iterable[FieldError]:
    if not name:
        return (errors.required(path),)
    if len(name) > _MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        problem = f"must have at most {_MAX_NAME_LENGTH} characters and match regex ^{_NAME.pattern}$"
        return (errors.invalid(path, name, problem),)
    return (errors.duplicate(path, name),) if name in seen else ()


def check_host_sysctl(spec: ReadOnlyTree, name: str, path: Path) -> Iterable[FieldError]:
    """Refuse a sysctl of a namespace that is shared with the host."""
    dotted = dotted_sysctl(name).partition("*")[0]
    for host_field, is_of_namespace in _HOST_FIELDS:
        if spec.get(host_field) and is_of_namespace(dotted):
            return (errors.invalid(path, name, f"may not be specified when '{host_field}' is true"),)
    return ()


SECCOMP_OF_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_OF_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_OF_CONTAINER: Final = "container.apparmor.security.beta.kubernetes.io/"

_LOCALHOST, _RUNTIME_DEFAULT, _UNCONFINED = "Localhost", "RuntimeDefault", "Unconfined"
_TYPES: Final = (_LOCALHOST, _RUNTIME_DEFAULT, _UNCONFINED)
_LOCALHOST_PREFIX: Final = "localhost/"
_MAX_PATH_LENGTH: Final = 4095

_ANNOTATED: Final[Mapping[str, tuple[str, ...]]] = {
    _UNCONFINED: ("unconfined",),
    _RUNTIME_DEFAULT: ("runtime/default", "docker/default"),
}
"""The values of annotations for a type of profile. AppArmor has only the first of each."""


# --- fields


def check_seccomp(profile: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    of_type, localhost = profile.get("type", ""), profile.get("localhostProfile")
    if not of_type:
        yield errors.required(path.child("type"), "type is required when seccompProfile is set")
    elif of_type not in _TYPES:
        yield errors.not_supported(path.child("type"), of_type, _TYPES)
    path = path.child("localhostProfile")
    if of_type != _LOCALHOST:
        if localhost is not None:
            value = internal("core.SeccompProfile", profile)
            yield errors.invalid(path, value, "can only be set when seccomp type is Localhost")
    elif localhost is None:
        yield errors.required(path, "must be set when seccomp type is Localhost")
    else:
        yield from check_descending(localhost, path)


def check_apparmor(profile: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    of_type, localhost = profile.get("type", ""), profile.get("localhostProfile")
    if not of_type:
        yield errors.required(path.child("type"), "type is required when appArmorProfile is set")
    elif of_type not in _TYPES:
        yield errors.not_supported(path.child("type"), of_type, _TYPES)
    elif of_type == _LOCALHOST:
        yield from _check_localhost_profile(localhost, path.child("localhostProfile"))
    elif localhost is not None:
        problem = "can only be set when AppArmor type is Localhost"
        yield errors.invalid(path.child("localhostProfile"), localhost, problem)


def _check_localhost_profile(name: str | None, path: Path) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path, "must be set when AppArmor type is Localhost")
        return
    if name.strip() != name:
        yield errors.invalid(path, name, "must not be padded with whitespace")
    yield from max_bytes(_MAX_PATH_LENGTH)(name, path)


# --- annotations


def check_seccomp_annotations(annotations: Mapping[str, str], path: Path) -> Iterator[FieldError]:
    for key, profile in annotations.items():
        if key == SECCOMP_OF_POD or key.startswith(SECCOMP_OF_CONTAINER):
            yield from _check_seccomp_annotation(profile, path.child(key))


def _check_seccomp_annotation(profile: str, path: Path) -> Iterable[FieldError]:
    if profile.startswith(_LOCALHOST_PREFIX):
        return check_descending(profile.removeprefix(_LOCALHOST_PREFIX), path)
    if any(profile in named for named in _ANNOTATED.values()):
        return ()
    return (errors.invalid(path, profile, "must be a valid seccomp profile"),)


def check_apparmor_annotations(
    annotations: Mapping[str, str], spec: ReadOnlyTree, path: Path
) -> Iterator[FieldError]:
    containers = {container.get("name", "") for container, _ in containers_of(spec, path)}
    for key, profile in annotations.items():
        if not key.startswith(APPARMOR_OF_CONTAINER):
            continue
        container = key.removeprefix(APPARMOR_OF_CONTAINER)
        if container not in containers:
            yield errors.invalid(path.key(key), container, "container not found")
        profiles = ("", *(named[0] for named in _ANNOTATED.values()))
        if profile not in profiles and not profile.startswith(_LOCALHOST_PREFIX):
            problem = f"invalid AppArmor profile name: {gotext.quote(profile)}"
            yield errors.invalid(path.key(key), profile, problem)


# --- both


def check_seccomp_agrees(
    annotations: Mapping[str, str], spec: ReadOnlyTree, path: Path
) -> Iterator[FieldError]:
    of_pod = _profile(spec, "seccompProfile")
    if of_pod is not None and SECCOMP_OF_POD in annotations:
        yield from _check_agrees(
            annotations[SECCOMP_OF_POD], of_pod, path.child("securityContext"), "seccomp"
        )
    for container, container_path in containers_of(spec, path):
        profile, key = (
            _profile(container, "seccompProfile"),
            f"{SECCOMP_OF_CONTAINER}{container.get('name', '')}",
        )
        if profile is not None and key in annotations:
            yield from _check_agrees(
                annotations[key], profile, container_path.child("securityContext"), "seccomp"
            )


def check_apparmor_agrees(
    annotations: Mapping[str, str], spec: ReadOnlyTree, path: Path
) -> Iterator[FieldError]:
    if os_of(spec) == WINDOWS:
        return
    of_pod = _profile(spec, "appArmorProfile")
    for container, container_path in containers_of(spec, path):
        profile = _profile(container, "appArmorProfile")
        profile = of_pod if profile is None else profile
        key = f"{APPARMOR_OF_CONTAINER}{container.get('name', '')}"
        if profile is not None and key in annotations:
            yield from _check_agrees(
                annotations[key], profile, container_path.child("securityContext"), "apparmor"
            )


def _profile(holder: ReadOnlyTree, field: str) -> ReadOnlyTree | None:
    profile: ReadOnlyTree | None = (holder.get("securityContext") or {}).get(field)
    return profile


def _check_agrees(
    annotation: str, profile: ReadOnlyTree, path: Path, profile_kind: str
) -> Iterable[FieldError]:
    path = path.child("seccompProfile" if profile_kind == "seccomp" else "appArmorProfile")
    of_type, localhost = profile.get("type", ""), profile.get("localhostProfile")
    wrong_type = errors.forbidden(
        path.child("type"), f"{profile_kind} type in annotation and field must match"
    )
    if of_type != _LOCALHOST:
        named = _ANNOTATED.get(of_type, (annotation,))
        return () if annotation in (named if profile_kind == "seccomp" else named[:1]) else (wrong_type,)
    if not annotation.startswith(_LOCALHOST_PREFIX):
        return (wrong_type,)
    if annotation.removeprefix(_LOCALHOST_PREFIX) == localhost:
        return ()
    detail = f"{profile_kind} profile in annotation and field must match"
    return (errors.forbidden(path.child("localhostProfile"), detail),)


check_id: Final = between(0, 2**31 - 1)
_IDS: Final = all_of(pointer("runAsUser", check_id), pointer("runAsGroup", check_id))
_MASKED, _UNMASKED = "Default", "Unmasked"


# --- containers


def _check_proc_mount(context: ReadOnlyTree, path: Path, pod_context: PodContext) -> Iterator[FieldError]:
    mount, path = context.get("procMount"), path.child("procMount")
    if mount is None:
        return
    yield from one_of(_MASKED, _UNMASKED)(mount, path)
    if mount == _UNMASKED and pod_context.host_users:
        yield errors.invalid(path, mount, "`hostUsers` must be false to use `Unmasked`")


SYS_ADMIN: Final = "CAP_SYS_ADMIN"


def _check_escalation(context: ReadOnlyTree, path: Path, pod_context: PodContext) -> Iterator[FieldError]:
    """Check that a container without privilege escalation is not privileged from the start."""
    if context.get("allowPrivilegeEscalation") is not False:
        return
    forbidding = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged"):
        yield errors.invalid(
            path, internal("core.SecurityContext", context), f"{forbidding} `privileged` to true"
        )
    if pod_context.options.privileged_capability and not is_before("1.37"):
        return
    for capability in (context.get("capabilities") or {}).get("add", ()):
        if capability == SYS_ADMIN:
            problem = f"{forbidding} `capabilities.Add` {SYS_ADMIN}"
            yield errors.invalid(path, internal("core.SecurityContext", context), problem)


_PROFILES_OF_CONTAINER: Final = all_of(
    pointer("windowsOptions", check_windows_options), pointer("appArmorProfile", check_apparmor)
)


def check_security_context(
    container: ReadOnlyTree, path: Path, pod_context: PodContext
) -> Iterator[FieldError]:
    context, path = container.get("securityContext"), path.child("securityContext")
    if context is None:
        return
    if context.get("privileged") and forbids_privileged():
        yield errors.forbidden(path.child("privileged"), FORBIDDEN)
    yield from _IDS(context, path)
    yield from _check_proc_mount(context, path, pod_context)
    yield from pointer("seccompProfile", check_seccomp)(context, path)
    yield from _check_escalation(context, path, pod_context)
    yield from _PROFILES_OF_CONTAINER(context, path)


# --- pods

_GROUPS: Final = all_of(pointer("fsGroup", check_id), _IDS, field("supplementalGroups", each_item(check_id)))
_POLICIES: Final = all_of(
    pointer("fsGroupChangePolicy", one_of("Always", "OnRootMismatch")),
    pointer("seccompProfile", check_seccomp),
    _PROFILES_OF_CONTAINER,
    pointer("supplementalGroupsPolicy", one_of("Merge", "Strict")),
)
_SELINUX: Final = "seLinuxChangePolicy"
_RECURSIVE: Final = pointer(_SELINUX, one_of("Recursive"))
_ANY_SELINUX: Final = pointer(_SELINUX, one_of("MountOption", "Recursive"))


def _check_shared_processes(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if not (spec.get("shareProcessNamespace") and spec.get("hostPID")):
        return ()
    problem = "ShareProcessNamespace and HostPID cannot both be enabled"
    return (errors.invalid(path.child("shareProcessNamespace"), True, problem),)  # noqa: FBT003 - the value that is shown


def check_pod_security_context(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    """Check the security context of a pod, and the shared processes: before 1.37, upstream's internal type has them in it."""
    spec, options = pod_context.spec, pod_context.options
    path_of_spec, path = path, path.child("securityContext")
    context = spec.get("securityContext") or {}
    yield from _GROUPS(context, path)
    is_older = is_before("1.37")
    if is_older:
        yield from _check_shared_processes(spec, path)
    sysctls = context.get("sysctls", ())
    yield from check_sysctls(spec, sysctls, path.child("sysctls"), allow_host=options.host_sysctls)
    yield from _POLICIES(context, path)
    only_recursive = is_older and not options.selinux_policy
    yield from (_RECURSIVE if only_recursive else _ANY_SELINUX)(context, path)
    if not is_older:
        yield from _check_shared_processes(spec, path_of_spec)
