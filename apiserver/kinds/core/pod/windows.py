"""Validation of Windows pods: their options, and the fields that they must not have."""

import re
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Final

from mockube.apimachinery import errors, gotext, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import all_of, pointer, report
from mockube.apiserver.kinds.common.validation_context import forbids_privileged, is_before

from .context import PodContext, containers_of

FORBIDDEN: Final = "disallowed by cluster policy"
_MAX_SPEC_KIB: Final = 64
_MAX_DOMAIN_LENGTH, _MAX_USER_LENGTH = 256, 104

_NET_BIOS: Final = re.compile(r"""[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}""")
_DNS_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS: Final = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_DOTS_AND_SPACES: Final = re.compile(r"[. ]+")
_NOT_IN_USER: Final = re.compile(r"""["/\\:;|=,+*?<>@\[\]]""")


def _credential_problems(spec: str) -> Iterator[str]:
    size = len(spec.encode())
    if not size:
        yield "gmsaCredentialSpec cannot be an empty string"
    elif size > _MAX_SPEC_KIB * 1024:
        yield f"gmsaCredentialSpec size must be under {_MAX_SPEC_KIB} KiB"


def _user_name_problems(name: str) -> Iterator[str]:
    """Yield the problems of a user name, which may have a domain before a backslash."""
    if not name:
        yield "runAsUserName cannot be an empty string"
    elif _CONTROL.search(name):
        yield "runAsUserName cannot contain control characters"
    elif name.count("\\") > 1:
        yield "runAsUserName cannot contain more than one backslash"
    else:
        domain, backslash, user = name.rpartition("\\")
        if backslash:
            yield from _domain_problems(domain)
        yield from _user_problems(user)


def _domain_problems(domain: str) -> Iterator[str]:
    if len(domain.encode()) >= _MAX_DOMAIN_LENGTH:
        yield f"runAsUserName's Domain length must be under {_MAX_DOMAIN_LENGTH} characters"
    if not (_NET_BIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
        yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"


def _user_problems(user: str) -> Iterator[str]:
    if not user:
        yield "runAsUserName's User cannot be empty"
    elif len(user.encode()) > _MAX_USER_LENGTH:
        yield f"runAsUserName's User length must not be longer than {_MAX_USER_LENGTH} characters"
    if _DOTS_AND_SPACES.fullmatch(user):
        yield "runAsUserName's User cannot contain only periods or spaces"
    if _NOT_IN_USER.search(user):
        yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"


check_windows_options: Final = all_of(
    pointer("gmsaCredentialSpecName", report(names.check_dns1123_subdomain)),
    pointer("gmsaCredentialSpec", report(_credential_problems)),
    pointer("runAsUserName", report(_user_name_problems)),
)


# --- containers that are processes of the host


def _host_process(holder: ReadOnlyTree) -> bool | None:
    options = (holder.get("securityContext") or {}).get("windowsOptions") or {}
    flag: bool | None = options.get("hostProcess")
    return flag


def check_host_processes(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    """Check that all containers of a pod are HostProcess containers in the host network, or none is."""
    pod_value = _host_process(pod_context.spec)
    host_process_flags = []
    for container, container_path in containers_of(pod_context.spec, path):
        container_value = _host_process(container)
        if container_value is not None and pod_value is not None and container_value != pod_value:
            field_path = container_path.child("securityContext", "windowsOptions", "hostProcess")
            pod_text = gotext.format_v(pod_value)
            problem = f"pod hostProcess value must be identical if both are specified, was {pod_text}"
            yield errors.invalid(field_path, container_value, problem)
        host_process_flags.append(bool(pod_value if container_value is None else container_value))
    if not any(host_process_flags):
        return
    if not all(host_process_flags):
        problem = (
            "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        )
        yield errors.invalid(path, "", problem)
    if not pod_context.host_network:
        problem = "hostNetwork must be true if pod contains any hostProcess containers"
        yield errors.invalid(path.child("hostNetwork"), False, problem)  # noqa: FBT003 - the value that is shown
    if forbids_privileged():
        yield errors.forbidden(path, f"hostProcess containers are {FORBIDDEN}")


# --- what there is on one system only

_NO_WINDOWS: Final = "cannot be set for a windows pod"
_NO_LINUX: Final = "windows options cannot be set for a linux pod"

_HOST_FIELDS: Final = (("hostUsers",), ("hostPID",), ("hostIPC",), ("shareProcessNamespace",))
_NOT_OF_WINDOWS_PODS: Final = (
    ("securityContext", "appArmorProfile"), ("securityContext", "seLinuxOptions"), ("securityContext", "seccompProfile"),
    ("securityContext", "fsGroup"), ("securityContext", "fsGroupChangePolicy"), ("securityContext", "sysctls"),
    ("securityContext", "runAsUser"), ("securityContext", "runAsGroup"), ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"), ("securityContext", "seLinuxChangePolicy"), *_HOST_FIELDS,
)  # fmt: skip
_NOT_OF_OLDER_WINDOWS_PODS: Final = (
    *_NOT_OF_WINDOWS_PODS[:2], *_HOST_FIELDS[:3], *_NOT_OF_WINDOWS_PODS[2:6], _HOST_FIELDS[3],
    *_NOT_OF_WINDOWS_PODS[6:11],
)  # fmt: skip
"""The fields in the order of the errors in minors before 1.37."""
_NOT_OF_WINDOWS_CONTAINERS: Final = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip

_UNSET: Final = {"hostPID": False, "hostIPC": False, "sysctls": ()}


def check_windows_pod(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    for steps in _NOT_OF_OLDER_WINDOWS_PODS if is_before("1.37") else _NOT_OF_WINDOWS_PODS:
        *within, last = steps
        value = reduce(lambda tree, step: tree.get(step) or {}, within, spec).get(last)
        if value is not None and value != _UNSET.get(last):
            yield errors.forbidden(path.child(*steps), _NO_WINDOWS)
    for container, container_path in containers_of(spec, path):
        context = container.get("securityContext") or {}
        for field in _NOT_OF_WINDOWS_CONTAINERS:
            if context.get(field) is not None:
                yield errors.forbidden(container_path.child("securityContext", field), _NO_WINDOWS)


def check_linux_pod(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    holders = [(spec, path), *containers_of(spec, path)]
    return [
        errors.forbidden(field_path.child("securityContext", "windowsOptions"), _NO_LINUX)
        for holder, field_path in holders
        if (holder.get("securityContext") or {}).get("windowsOptions") is not None
    ]
