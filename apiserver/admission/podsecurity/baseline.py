"""The checks of the level baseline: they prevent known ways to escalate privileges."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, Final

from mockube.apimachinery import gotext
from mockube.apimachinery.tree import ReadOnlyTree

from .check import (
    Annotations,
    Check,
    Violation,
    container_names,
    containers,
    has_user_namespace,
    name_list,
    plural_of,
    quote_names,
    security_context,
    setters,
)
from .policy import BASELINE

APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
PROFILES: Final = frozenset({"RuntimeDefault", "Localhost"})
_CAPABILITIES: Final = """
    AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT
"""
CAPABILITIES: Final = frozenset(_CAPABILITIES.split())
_SELINUX: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t"})
_SYSCTLS: Final = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    }
)
_SYSCTLS_27: Final = _SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
_SYSCTLS_29: Final = _SYSCTLS_27 | {
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}
_SYSCTLS_32: Final = _SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
_SYSCTLS_37: Final = _SYSCTLS_32 | {"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"}


def _apparmor(annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    bad = set[str]()

    def is_bad(context: ReadOnlyTree) -> bool:
        return _collect_other(context.get("appArmorProfile"), PROFILES, bad)

    setter_names = setters(spec, is_bad)
    forbidden_annotations = sorted(
        f"{name}={gotext.quote(value)}"
        for name, value in annotations.items()
        if name.startswith(APPARMOR) and not _is_allowed_apparmor(value)
    )
    if forbidden_annotations:
        setter_names.append(plural_of("annotation", len(forbidden_annotations)))
    if not setter_names:
        return None
    values = [*sorted(bad), *forbidden_annotations]
    return Violation(
        plural_of("forbidden AppArmor profile", len(values)),
        f"{' and '.join(setter_names)} must not set AppArmor profile type to {quote_names(values)}",
    )


def _is_allowed_apparmor(value: str) -> bool:
    return value in ("", "runtime/default") or value.startswith("localhost/")


def _collect_other(profile: Any, allowed: Collection[str], bad: set[str]) -> bool:
    """Return whether the type of a profile is not allowed; add such a type to `bad`."""
    if profile is None or profile.get("type", "") in allowed:
        return False
    bad.add(profile.get("type", ""))
    return True


def _capabilities(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    return added_capabilities("non-default capabilities", spec, CAPABILITIES)


def added_capabilities(reason: str, spec: ReadOnlyTree, allowed: Collection[str]) -> Violation | None:
    bad = set[str]()

    def is_bad(container: ReadOnlyTree) -> set[str]:
        added = (security_context(container).get("capabilities") or {}).get("add") or ()
        others = {name for name in added if name not in allowed}
        bad.update(others)
        return others

    names = container_names(spec, is_bad)
    if not names:
        return None
    problem = f"{name_list('container', names)} must not include {quote_names(sorted(bad))}"
    return Violation(reason, f"{problem} in securityContext.capabilities.add")


def _host_namespaces(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    host_fields = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return Violation("host namespaces", ", ".join(host_fields)) if host_fields else None


def _host_path_volumes(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    names = [volume["name"] for volume in spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", name_list("volume", names)) if names else None


def _host_ports(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    def ports(container: ReadOnlyTree) -> list[str]:
        return [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]

    names, values = _containers_with_values(spec, ports)
    if not names:
        return None
    subject = f"{name_list('container', names)} {plural_of('uses', len(names), 'use')}"
    return Violation("hostPort", f"{subject} {plural_of('hostPort', len(values))} {', '.join(values)}")


def _containers_with_values(
    spec: ReadOnlyTree, values: Callable[[ReadOnlyTree], Collection[str]]
) -> tuple[list[str], list[str]]:
    """Return the names of the containers that use some values, and all these values, sorted."""
    used = [
        (container["name"], container_values)
        for container in containers(spec)
        if (container_values := values(container))
    ]
    return [name for name, _ in used], sorted(
        {value for _, container_values in used for value in container_values}
    )


def _host_probes(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    names, hosts = _containers_with_values(spec, lambda container: list(_hosts(container)))
    if not names:
        return None
    subject = f"{name_list('container', sorted(set(names)))} {plural_of('uses', len(names), 'use')}"
    field = plural_of("probe or lifecycle host", len(hosts))
    return Violation("probe or lifecycle host", f"{subject} {field} {quote_names(hosts)}")


def _hosts(container: ReadOnlyTree) -> Iterator[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = (
        *(container.get(field) for field in ("livenessProbe", "readinessProbe", "startupProbe")),
        *(lifecycle.get(field) for field in ("postStart", "preStop")),
    )
    for handler in handlers:
        for action in ("httpGet", "tcpSocket"):
            if host := ((handler or {}).get(action) or {}).get("host"):
                yield host


def _check_privileged(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    names = container_names(spec, lambda container: security_context(container).get("privileged"))
    if not names:
        return None
    return Violation(
        "privileged", f"{name_list('container', names)} must not set securityContext.privileged=true"
    )


def proc_mount(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    def types(container: ReadOnlyTree) -> Collection[str]:
        mount = security_context(container).get("procMount")
        return () if mount in (None, "Default") else (mount,)

    names, values = _containers_with_values(spec, types)
    if not names:
        return None
    return Violation(
        "procMount",
        f"{name_list('container', names)} must not set securityContext.procMount to {quote_names(values)}",
    )


def _proc_mount_35(annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    return None if has_user_namespace(spec) else proc_mount(annotations, spec)


def _selinux(types: Collection[str], _annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    bad, fields = set[str](), set[str]()

    def is_bad(context: ReadOnlyTree) -> bool:
        options = context.get("seLinuxOptions") or {}
        is_bad_type = _collect_other(options or None, types, bad)
        name_list = {field for field in ("user", "role") if options.get(field)}
        fields.update(name_list)
        return is_bad_type or bool(name_list)

    setter_names = setters(spec, is_bad)
    if not setter_names:
        return None
    data = [name_list("type", sorted(bad))] if bad else []
    data += [f"{field} may not be set" for field in ("user", "role") if field in fields]
    problem = f"{' and '.join(setter_names)} set forbidden securityContext.seLinuxOptions"
    return Violation("seLinuxOptions", f"{problem}: {'; '.join(data)}")


def _seccomp_annotations(annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    names = {SECCOMP_POD, *(SECCOMP_CONTAINER + container["name"] for container in containers(spec))}
    forbidden_annotations = sorted(
        f"{name}={gotext.quote(annotations[name])}"
        for name in names
        if name in annotations and not _is_allowed_seccomp(annotations[name])
    )
    if not forbidden_annotations:
        return None
    return Violation(
        "seccompProfile",
        f"forbidden {plural_of('annotation', len(forbidden_annotations))} {', '.join(forbidden_annotations)}",
    )


def _is_allowed_seccomp(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def seccomp(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    bad = set[str]()
    setter_names = setters(spec, lambda context: _collect_other(context.get("seccompProfile"), PROFILES, bad))
    if not setter_names:
        return None
    problem = f"{' and '.join(setter_names)} must not set securityContext.seccompProfile.type to"
    return Violation("seccompProfile", f"{problem} {quote_names(sorted(bad))}")


def _sysctls(allowed: Collection[str], _annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    sysctls = security_context(spec).get("sysctls") or ()
    names = [sysctl["name"] for sysctl in sysctls if sysctl["name"] not in allowed]
    return Violation("forbidden sysctls", ", ".join(names)) if names else None


def _windows_host_process(_annotations: Annotations, spec: ReadOnlyTree) -> Violation | None:
    setter_names = setters(spec, lambda context: (context.get("windowsOptions") or {}).get("hostProcess"))
    if not setter_names:
        return None
    problem = "must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", f"{' and '.join(setter_names)} {problem}")


CHECKS: Final = (
    Check("appArmorProfile", BASELINE, ((0, _apparmor),)),
    Check("capabilities_baseline", BASELINE, ((0, _capabilities),)),
    Check("hostNamespaces", BASELINE, ((0, _host_namespaces),)),
    Check("hostPathVolumes", BASELINE, ((0, _host_path_volumes),)),
    Check("hostPorts", BASELINE, ((0, _host_ports),)),
    Check("hostProbesAndHostLifecycle", BASELINE, ((34, _host_probes),)),
    Check("privileged", BASELINE, ((0, _check_privileged),)),
    Check("procMount", BASELINE, ((0, proc_mount), (35, _proc_mount_35))),
    Check(
        "seLinuxOptions",
        BASELINE,
        ((0, partial(_selinux, _SELINUX)), (31, partial(_selinux, _SELINUX | {"container_engine_t"}))),
    ),
    Check("seccompProfile_baseline", BASELINE, ((0, _seccomp_annotations), (19, seccomp))),
    Check(
        "sysctls",
        BASELINE,
        (
            (0, partial(_sysctls, _SYSCTLS)),
            (27, partial(_sysctls, _SYSCTLS_27)),
            (29, partial(_sysctls, _SYSCTLS_29)),
            (32, partial(_sysctls, _SYSCTLS_32)),
            (37, partial(_sysctls, _SYSCTLS_37)),
        ),
    ),
    Check("windowsHostProcess", BASELINE, ((0, _windows_host_process),)),
)
"""Sorted by id; evaluated in this order."""
