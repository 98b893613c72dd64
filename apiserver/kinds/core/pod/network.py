"""Validation of a pod's host names, host namespaces and DNS configuration."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.addresses import check_ip

from .context import PodContext, containers_of

_SUBDOMAIN: Final = checks.report(names.check_dns1123_subdomain)

check_host_aliases: Final = checks.each_item(
    checks.field("ip", check_ip, absent=""),
    checks.field("hostnames", checks.each_item(_SUBDOMAIN), absent=()),
)


# --- DNS

_NO_POLICY: Final = "None"

check_dns_policy: Final = checks.require(
    "dnsPolicy", checks.one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", _NO_POLICY)
)

_MAX_SERVERS, _MAX_SEARCHES, _MAX_SEARCHES_LENGTH = 3, 32, 2048


def check_dns_config(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    config, path = spec.get("dnsConfig"), path.child("dnsConfig")
    if spec.get("dnsPolicy") == _NO_POLICY:
        if config is None:
            return (errors.required(path, f"must provide `dnsConfig` when `dnsPolicy` is {_NO_POLICY}"),)
        if not config.get("nameservers"):
            detail = f"must provide at least one DNS nameserver when `dnsPolicy` is {_NO_POLICY}"
            return (errors.required(path.child("nameservers"), detail),)
    return () if config is None else _DNS_CONFIG(config, path)


def _check_name_servers(servers: Sequence[str], path: Path) -> Iterator[FieldError]:
    if len(servers) > _MAX_SERVERS:
        yield errors.invalid(path, servers, f"must not have more than {_MAX_SERVERS} nameservers")
    yield from checks.each_item(check_ip)(servers, path)


def _check_searches(searches: Sequence[str], path: Path) -> Iterator[FieldError]:
    if len(searches) > _MAX_SEARCHES:
        yield errors.invalid(path, searches, f"must not have more than {_MAX_SEARCHES} search paths")
    if len(" ".join(searches).encode()) > _MAX_SEARCHES_LENGTH:
        problem = (
            f"must not have more than {_MAX_SEARCHES_LENGTH} characters (including spaces) in the search list"
        )
        yield errors.invalid(path, searches, problem)
    for index, search in enumerate(searches):
        if search != ".":
            check = checks.report(names.check_dns1123_subdomain_with_underscore)
            yield from check(search.removesuffix("."), path.index(index))


def _check_option(option: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    return () if option.get("name") else (errors.required(path, "must not be empty"),)


_DNS_CONFIG: Final = checks.all_of(
    checks.field("nameservers", _check_name_servers, absent=()),
    checks.field("searches", _check_searches, absent=()),
    checks.field("options", checks.each_item(_check_option)),
)


# --- the pod's own name


def check_hostname_override(spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    name, path = spec.get("hostnameOverride"), path.child("hostnameOverride")
    if name is None:
        return
    for flag in ("setHostnameAsFQDN", "hostNetwork"):
        if spec.get(flag):
            yield errors.forbidden(path, f"may not be specified when {flag} is true")
    yield from checks.all_of(checks.max_bytes(64), _SUBDOMAIN)(name, path)


# --- namespaces


def check_host_users(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    """Check that a pod with its own user namespace shares no other namespace with the host."""
    if pod_context.host_users:
        return
    options, detail = pod_context.options, "when `hostUsers` is false"
    for flag, reported_field in (
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ):
        if pod_context.spec.get(flag) and not (flag == "hostNetwork" and options.host_network_users):
            yield errors.forbidden(path.child(reported_field), detail)
    if not options.volume_devices:
        for container, container_path in containers_of(pod_context.spec, path):
            if container.get("volumeDevices"):
                yield errors.forbidden(container_path.child("volumeDevices"), detail)
