"""Validation of volume sources older than CSI that have other rules than required fields."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check

_LUN: Final = checks.between(0, 255)

_HOST_AND_PORT: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")


# --- iSCSI

_NOT_IN_NAME: Final = re.compile(r"[,;*&$|\t\n\f\r ]")
_NOT_IN_AUTHORITY: Final = re.compile(r"[^A-Za-z0-9.-]")
_AUTHORITY: Final = re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]")


def _is_qualified_name(name: str) -> bool:
    """Return whether a name ends with `iqn.YEAR-MONTH.AUTHORITY:REST`.

    Upstream searches for that with one pattern, which would take quadratic time here.
    """
    *authorities, suffix = _NOT_IN_NAME.split(name)[-1].split(":")
    candidates = authorities if suffix else authorities[:-1]
    return any(_AUTHORITY.search(_NOT_IN_AUTHORITY.split(candidate)[-1]) for candidate in candidates)


_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "iqn": _is_qualified_name,
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}").fullmatch,
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}").fullmatch,
}

_WRONG_FORMAT: Final = "must be valid format"


def _initiator(unknown_format: str) -> Callable[[str, Path], Iterable[FieldError]]:
    def check(name: str, path: Path) -> Iterable[FieldError]:
        matches = _FORMATS.get(name[:3])
        if matches is None:
            return (errors.invalid(path, name, unknown_format),)
        return () if matches(name) else (errors.invalid(path, name, _WRONG_FORMAT),)

    return check


def _check_chap(source: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    uses_secret = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if uses_secret and source.get("secretRef") is None:
        return (errors.required(path.child("secretRef")),)
    return ()


def _check_initiator_name(unknown_format: str) -> Callable[[ReadOnlyTree, Path], Iterable[FieldError]]:
    check = _initiator(unknown_format)

    def check_field(source: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        name = source.get("initiatorName")
        return () if name is None else check(name, path.child("initiatorname"))

    return check_field


_UNKNOWN_FORMAT: Final = f"{_WRONG_FORMAT} starting with iqn, eui, or naa"

check_iscsi: Final = checks.all_of(
    checks.require("targetPortal"),
    checks.require("iqn", _initiator(_UNKNOWN_FORMAT)),
    checks.field("lun", _LUN, absent=0),
    _check_chap,
    _check_initiator_name(_UNKNOWN_FORMAT),
)

_MAX_PORTAL_LENGTH: Final = 64
PORTAL_TOO_LONG: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)


def is_portal_too_long(volume: str, source: ReadOnlyTree) -> bool:
    """Return whether the kubelet cannot name the interface of an initiator after a volume and its portal."""
    length = len(f"{volume}:{source.get('targetPortal', '')}".encode())
    return source.get("initiatorName") is not None and length > _MAX_PORTAL_LENGTH


def persistent_iscsi(volume: str) -> Check:
    """Return the check of the source of a PersistentVolume with a name; "" for an inline volume."""

    def check_portal_length(source: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        if not is_portal_too_long(volume, source):
            return ()
        return (errors.invalid(path.child("targetportal"), source.get("targetPortal", ""), PORTAL_TOO_LONG),)

    return checks.all_of(
        checks.require("targetPortal"),
        check_portal_length,
        checks.require("iqn", _initiator(_WRONG_FORMAT)),
        checks.field("lun", _LUN, absent=0),
        _check_chap,
        checks.pointer("secretRef", checks.require("name")),
        _check_initiator_name(_WRONG_FORMAT),
    )


# --- Fibre Channel


def check_fc(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    targets, names = source.get("targetWWNs"), source.get("wwids")
    targets_path = path.child("targetWWNs")
    if not targets and not names:
        yield errors.required(targets_path, "must specify either targetWWNs or wwids, but not both")
    if targets and names:
        problem = "targetWWNs and wwids can not be specified simultaneously"
        yield errors.invalid(targets_path, targets, problem)
    if targets and source.get("lun") is None:
        yield errors.required(path.child("lun"), "lun is required if targetWWNs is specified")
    elif targets:
        yield from checks.pointer("lun", _LUN)(source, path)


# --- Quobyte, Flocker, Flex


def check_quobyte(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    registry = source.get("registry", "")
    problem = "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        yield errors.required(path.child("registry"), problem)
    elif len(source.get("tenant", "").encode()) > 64:
        detail = "must be a UUID and may not exceed a length of 64 characters"
        yield errors.required(path.child("tenant"), detail)
    else:
        for pair in registry.split(","):
            if not _HOST_AND_PORT.fullmatch(pair):
                yield errors.invalid(path.child("registry"), registry, problem)
    yield from checks.require("volume")(source, path)


def check_flocker(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield errors.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        problem = "datasetName and datasetUUID can not be specified simultaneously"
        yield errors.invalid(path, "resource", problem)
    if "/" in name:
        yield errors.invalid(path.child("datasetName"), name, "must not contain '/'")


def _check_options(options: ReadOnlyTree | None, path: Path) -> Iterator[FieldError]:
    for key in options or ():
        domain = f".{key.partition('/')[0].lower()}"
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            yield errors.invalid(path.key(key), key, "kubernetes.io and k8s.io namespaces are reserved")


check_flex: Final = checks.all_of(checks.require("driver"), checks.field("options", _check_options))


# --- Azure

_MANAGED: Final = "Managed"


def _check_disk_uri(source: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    uri, kind = source.get("diskURI", ""), source.get("kind")
    start, example = (
        "https://",
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
    )
    if kind == _MANAGED:
        start = "/subscriptions/"
        example = (
            f"{start}{{sub-id}}/resourcegroups/{{group-name}}/providers/microsoft.compute/disks/{{disk-id}}"
        )
    if kind is None or uri.startswith(start):
        return ()
    return (errors.not_supported(path.child("diskURI"), uri, (example,)),)


check_azure_disk: Final = checks.all_of(
    checks.require("diskName"),
    checks.require("diskURI"),
    checks.pointer("cachingMode", checks.one_of("None", "ReadOnly", "ReadWrite")),
    checks.pointer("kind", checks.one_of("Dedicated", _MANAGED, "Shared")),
    _check_disk_uri,
)
