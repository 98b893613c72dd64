"""Validation of projected volumes, and of keys and fields that are files of a volume."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks, signer_names
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.field_references import check_field_of_volume, check_resource_of_volume
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.selectors import check_selector
from mockube.apiserver.kinds.common.user_annotations import check_user_annotations


def check_no_backsteps(target: str, path: Path) -> Iterator[FieldError]:
    if ".." in target.split("/"):
        yield errors.invalid(path, target, "must not contain '..'")


check_descending: Final = checks.all_of(
    checks.require_that(lambda target: not target.startswith("/"), "must be a relative path"),
    check_no_backsteps,
)
"""Check a relative path that does not leave its folder."""


def _check_not_reserved(target: str, path: Path) -> Iterator[FieldError]:
    if target.startswith("..") and not target.startswith("../"):
        yield errors.invalid(path, target, "must not start with '..'")


check_not_reserved: Final = checks.all_of(check_descending, _check_not_reserved)
"""Check a descending path that does not start with two dots, as the kubelet's own files do."""


check_mode: Final = checks.require_that(
    lambda mode: 0 <= mode <= 0o777, "must be a number between 0 and 0777 (octal), both inclusive"
)

_OWNER: Final = checks.between(0, 2**31 - 1)
_USER: Final = checks.pointer("user", _OWNER)
_MODE_AND_USER: Final = checks.all_of(
    checks.pointer("defaultMode", check_mode), checks.pointer("defaultUser", _OWNER)
)

check_key_to_path: Final = checks.all_of(
    checks.require("key"),
    checks.require("path", check_not_reserved),
    checks.pointer("mode", check_mode),
    _USER,
)

keys_and_mode: Final = checks.all_of(
    _MODE_AND_USER, checks.field("items", checks.each_item(check_key_to_path))
)
"""The common check of ConfigMap and Secret volumes."""


def _check_reference(file: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    field_ref, resource_ref = file.get("fieldRef"), file.get("resourceFieldRef")
    if field_ref is not None:
        yield from check_field_of_volume(field_ref, path.child("fieldRef"))
        if resource_ref is not None:
            problem = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield errors.invalid(path, "resource", problem)
    elif resource_ref is not None:
        yield from check_resource_of_volume(resource_ref, path.child("resourceFieldRef"))
    else:
        yield errors.required(path, "one of fieldRef and resourceFieldRef is required")


check_downward_file: Final = checks.all_of(
    checks.require("path", check_not_reserved), _check_reference, checks.pointer("mode", check_mode), _USER
)


def check_downward(source: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check a `downwardAPI` volume. Upstream reports errors of its files without their indexes."""
    yield from _MODE_AND_USER(source, path)
    for file in source.get("items", ()):
        yield from check_downward_file(file, path)


# --- projected volumes

_MIN_SECONDS, _MAX_SECONDS = 600, 1 << 32


def _check_expiration(token: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    seconds, path = token.get("expirationSeconds") or 0, path.child("expirationSeconds")
    if seconds < _MIN_SECONDS:
        yield errors.invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MAX_SECONDS:
        yield errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


_TOKEN_PATH: Final = checks.require("path", check_not_reserved)
_ANY_TOKEN_PATH: Final = checks.require("path")


def _check_bundle(bundle: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    name, signer = bundle.get("name"), bundle.get("signerName")
    if name is not None and signer is not None:
        value = internal("core.ClusterTrustBundleProjection", bundle)
        yield errors.invalid(path, value, "only one of name and signerName may be used")
    elif name is not None:
        yield from _check_bundle_name(name, path.child("name"))
        if (selector := bundle.get("labelSelector")) is not None:
            problem = "labelSelector must be unset if name is specified"
            yield errors.invalid(path.child("labelSelector"), selector, problem)
    elif signer is not None:
        if not signer:
            yield errors.required(path.child("signerName"), "must be a valid signer name")
        yield from signer_names.check_signer_name(signer, path.child("signerName"))
        yield from checks.pointer("labelSelector", check_selector)(bundle, path)
    else:
        yield errors.required(path, "either name or signerName must be specified")
    yield from _BUNDLE_FILE(bundle, path)


_BUNDLE_FILE: Final = checks.all_of(
    checks.require("path"), _USER, checks.field("path", check_not_reserved, absent="")
)


def _check_bundle_name(name: str, path: Path) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path, "must be a valid object name")
    for problem in signer_names.check_bundle_name(name, signer_names.signer_of_bundle(name)):
        yield errors.invalid(path, name, f"not a valid clustertrustbundlename: {problem}")


_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def _check_certificate(certificate: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    signer, key_type = certificate.get("signerName") or "", certificate.get("keyType") or ""
    yield from signer_names.check_signer_name(signer, path.child("signerName"))
    yield from check_user_annotations(certificate.get("userAnnotations"), path.child("userAnnotations"))
    yield from _USER(certificate, path)
    if key_type not in _KEY_TYPES:
        yield errors.not_supported(path.child("keyType"), key_type, _KEY_TYPES)
    seconds, seconds_path = certificate.get("maxExpirationSeconds"), path.child("maxExpirationSeconds")
    if seconds is None:
        return
    minimum, maximum = signer_names.MIN_EXPIRATION_SECONDS, signer_names.max_expiration_seconds(signer)
    if seconds < minimum:
        problem = f"if provided, maxExpirationSeconds must be >= {minimum}"
        yield errors.invalid(seconds_path, seconds, problem)
    if seconds > maximum:
        problem = f"if provided, maxExpirationSeconds must be <= {maximum}"
        yield errors.invalid(seconds_path, seconds, problem)


_SOURCE_CHECKS: Final[Mapping[str, Check]] = {
    "secret": checks.require("name"),
    "configMap": checks.require("name"),
    "downwardAPI": checks.all_of(),
    "serviceAccountToken": _check_expiration,
    "clusterTrustBundle": _check_bundle,
    "podCertificate": _check_certificate,
}
"""The check of each type of source, before its files are checked."""


def _check_file(kind: str, file: ReadOnlyTree, index: int, path: Path) -> Iterable[FieldError]:
    if kind == "downwardAPI":
        return check_downward_file(file, path)
    return check_key_to_path(file, path.child("items").index(index))


def _check_files(
    kind: str, source: ReadOnlyTree, path: Path, volume: Path, used_paths: set[str]
) -> Iterator[FieldError]:
    """Check the files of a source, whose paths must differ from those of other sources."""
    for index, file in enumerate(source.get("items", ())):
        yield from _check_file(kind, file, index, path)
        target = file.get("path")
        if target in used_paths:
            value = target if kind == "downwardAPI" else source.get("name", "")
            yield errors.invalid(volume, value, "conflicting duplicate paths")
        elif target:
            used_paths.add(target)


_CERTIFICATE_FILES: Final = ("credentialBundlePath", "keyPath", "certificateChainPath")
_NO_CERTIFICATE_FILE: Final = (
    "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
)


def _check_own_paths(
    kind: str, source: ReadOnlyTree, path: Path, volume: Path, used_paths: set[str]
) -> Iterator[FieldError]:
    """Check the paths that are fields of a source itself."""
    if kind == "clusterTrustBundle":
        yield from _use_path(source.get("path") or "", volume, used_paths)
    if kind != "podCertificate":
        return
    present = [name for name in _CERTIFICATE_FILES if source.get(name)]
    for name in present:
        yield from check_not_reserved(source[name], path.child(name))
        yield from _use_path(source[name], volume, used_paths)
    if not present:
        yield errors.required(path, _NO_CERTIFICATE_FILE)


def _use_path(target: str, volume: Path, used_paths: set[str]) -> Iterable[FieldError]:
    if target in used_paths:
        return (errors.invalid(volume, target, "conflicting duplicate paths"),)
    used_paths.add(target)
    return ()


def _check_projected(token_path: Check) -> Check:
    def check(volume: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
        yield from _MODE_AND_USER(volume, path)
        used_paths: set[str] = set()
        for index, source in enumerate(volume.get("sources") or ()):
            source_path = path.child("sources").index(index)
            present = [kind for kind in _SOURCE_CHECKS if source.get(kind) is not None]
            for kind in present:
                yield from _SOURCE_CHECKS[kind](source[kind], source_path.child(kind))
                yield from _check_files(kind, source[kind], source_path.child(kind), path, used_paths)
                yield from _check_own_paths(kind, source[kind], source_path.child(kind), path, used_paths)
            if source.get("serviceAccountToken") is not None:
                # The error of a token's path has the path of the volume, as upstream.
                yield from token_path(source["serviceAccountToken"], path)
                yield from _USER(source["serviceAccountToken"], source_path.child("serviceAccountToken"))
            if len(present) > 1:
                yield errors.forbidden(source_path, "may not specify more than 1 volume type per source")

    return check


check_projected: Final = _check_projected(_TOKEN_PATH)
check_projected_leniently: Final = _check_projected(_ANY_TOKEN_PATH)
"""The check for updates of objects with an invalid token path: any token path is accepted."""
