"""Security contexts, of pods and of containers."""

from collections.abc import Iterable, Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.internal import internal
from apiserver.validation.pods.profiles import check_apparmor, check_seccomp
from apiserver.validation.pods.surroundings import Surroundings
from apiserver.validation.pods.sysctls import check_sysctls
from apiserver.validation.pods.windows import check_windows_options
from apiserver.validation.rules import Tree, between, each, every, field, one_of, pointer

check_id: Final = between(0, 2**31 - 1)
_IDS: Final = every(pointer("runAsUser", check_id), pointer("runAsGroup", check_id))
_MASKED, _UNMASKED = "Default", "Unmasked"


# --- containers


def _check_proc_mount(context: Tree, path: Path, around: Surroundings) -> Iterator[FieldError]:
    mount, path = context.get("procMount"), path.child("procMount")
    if mount is None:
        return
    yield from one_of(_MASKED, _UNMASKED)(mount, path)
    if mount == _UNMASKED and around.host_users:
        yield errors.invalid(path, mount, "`hostUsers` must be false to use `Unmasked`")


def _check_escalation(context: Tree, path: Path) -> Iterator[FieldError]:
    """Who may not gain privileges must not have them from the beginning."""
    if context.get("allowPrivilegeEscalation") is not False:
        return
    forbidding = "cannot set `allowPrivilegeEscalation` to false and"
    if context.get("privileged"):
        yield errors.invalid(
            path, internal("core.SecurityContext", context), f"{forbidding} `privileged` to true"
        )
    for capability in (context.get("capabilities") or {}).get("add", ()):
        if capability == "CAP_SYS_ADMIN":
            problem = f"{forbidding} `capabilities.Add` CAP_SYS_ADMIN"
            yield errors.invalid(path, internal("core.SecurityContext", context), problem)


_PROFILES_OF_CONTAINER: Final = every(
    pointer("windowsOptions", check_windows_options), pointer("appArmorProfile", check_apparmor)
)


def check_security_context(container: Tree, path: Path, around: Surroundings) -> Iterator[FieldError]:
    context, path = container.get("securityContext"), path.child("securityContext")
    if context is None:
        return
    yield from _IDS(context, path)
    yield from _check_proc_mount(context, path, around)
    yield from pointer("seccompProfile", check_seccomp)(context, path)
    yield from _check_escalation(context, path)
    yield from _PROFILES_OF_CONTAINER(context, path)


# --- pods

_GROUPS: Final = every(pointer("fsGroup", check_id), _IDS, field("supplementalGroups", each(check_id)))
_POLICIES: Final = every(
    pointer("fsGroupChangePolicy", one_of("Always", "OnRootMismatch")),
    pointer("seccompProfile", check_seccomp),
    _PROFILES_OF_CONTAINER,
    pointer("supplementalGroupsPolicy", one_of("Merge", "Strict")),
)
_SELINUX: Final = "seLinuxChangePolicy"
_RECURSIVE: Final = pointer(_SELINUX, one_of("Recursive"))
_ANY_SELINUX: Final = pointer(_SELINUX, one_of("MountOption", "Recursive"))


def _check_shared_processes(spec: Tree, path: Path) -> Iterable[FieldError]:
    if not (spec.get("shareProcessNamespace") and spec.get("hostPID")):
        return ()
    problem = "ShareProcessNamespace and HostPID cannot both be enabled"
    return (errors.invalid(path.child("shareProcessNamespace"), True, problem),)  # noqa: FBT003 - the value that is shown


def check_pod_security_context(around: Surroundings, path: Path) -> Iterator[FieldError]:
    """Some of what upstream counts as part of it stands in the spec."""
    spec, leniency, path = around.spec, around.leniency, path.child("securityContext")
    context = spec.get("securityContext") or {}
    yield from _GROUPS(context, path)
    yield from _check_shared_processes(spec, path)
    sysctls = context.get("sysctls", ())
    yield from check_sysctls(spec, sysctls, path.child("sysctls"), of_host=leniency.host_sysctls)
    yield from _POLICIES(context, path)
    yield from (_ANY_SELINUX if leniency.selinux_policy else _RECURSIVE)(context, path)
