"""Validation of a pod's volumes, volume mounts and volume devices."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from mockube.apimachinery import errors, gotext, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.validation_context import is_before
from mockube.apiserver.kinds.core.volumes.legacy import PORTAL_TOO_LONG, is_portal_too_long
from mockube.apiserver.kinds.core.volumes.projected import check_descending, check_projected_leniently
from mockube.apiserver.kinds.core.volumes.sources import SOURCES, check_source

from .context import PodContext, PodValidationOptions


@cache
def _sources(*, any_image: bool, any_token_path: bool) -> Mapping[str, Check]:
    """Return the checks of volume sources: images may lack a reference, and tokens may have `any_token_path`."""
    sources = dict(SOURCES)
    if not any_image:
        sources["image"] = checks.all_of(checks.require("reference"), SOURCES["image"])
    if any_token_path:
        sources["projected"] = check_projected_leniently
    return sources


def _check_iscsi_name(volume: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    name = volume.get("name", "")
    if is_portal_too_long(name, volume.get("iscsi") or {}):
        yield errors.invalid(path.child("name"), name, PORTAL_TOO_LONG)


def _claim_of(pod: str, volume: str) -> str:
    """Return the name of the claim that is created for an ephemeral volume."""
    return f"{pod}-{volume}"


def _check_claim_name(
    volume: ReadOnlyTree, pod: str, path: Path, sources: Mapping[str, Check]
) -> Iterator[FieldError]:
    name = volume.get("name", "")
    kind = next((kind for kind in sources if volume.get(kind) is not None), "")
    if kind != "ephemeral" or not pod or not name:
        return
    claim = _claim_of(pod, name)
    for problem in names.check_dns1123_subdomain(claim):
        yield errors.invalid(path.child("name"), name, f"PVC name {gotext.quote(claim)}: {problem}")


_NAME: Final = checks.require("name", checks.report(names.check_dns1123_label))


def check_volumes(
    spec: ReadOnlyTree, metadata: ReadOnlyTree | None, path: Path, options: PodValidationOptions
) -> tuple[dict[str, ReadOnlyTree], list[FieldError]]:
    """Return the valid volumes by name, and the errors of the others."""
    pod = (metadata or {}).get("name", "")
    # Before 1.37, image volumes need a reference in pods only.
    any_image = metadata is None if is_before("1.37") else options.images_without_reference
    sources = _sources(any_image=any_image, any_token_path=options.token_paths)
    volumes, path = spec.get("volumes") or (), path.child("volumes")
    ephemeral_claims = {
        _claim_of(pod, each.get("name", "")) for each in volumes if pod and each.get("ephemeral") is not None
    }
    good: dict[str, ReadOnlyTree] = {}
    field_errors: list[FieldError] = []
    for index, volume in enumerate(volumes):
        name, volume_path = volume.get("name", ""), path.index(index)
        source_errors = [*check_source(volume, volume_path, sources), *_check_iscsi_name(volume, volume_path)]
        source_errors += [*_check_claim_name(volume, pod, volume_path, sources), *_NAME(volume, volume_path)]
        if name in good:
            source_errors.append(errors.duplicate(volume_path.child("name"), name))
        if not source_errors:
            good[name] = volume
        field_errors += [*source_errors, *_check_not_ephemeral(volume, ephemeral_claims, volume_path)]
    return good, field_errors


def _check_not_ephemeral(
    volume: ReadOnlyTree, ephemeral_claims: set[str], path: Path
) -> Iterator[FieldError]:
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
    if claim in ephemeral_claims:
        problem = "must not reference a PVC that gets created for an ephemeral volume"
        yield errors.invalid(path.child("persistentVolumeClaim", "claimName"), claim, problem)


_BIDIRECTIONAL, _NO_PROPAGATION = "Bidirectional", "None"

_PROPAGATIONS: Final = checks.one_of(_BIDIRECTIONAL, "HostToContainer", _NO_PROPAGATION)
_RECURSIONS: Final = checks.one_of("Disabled", "Enabled", "IfPossible")


def check_mounts(container: ReadOnlyTree, path: Path, pod_context: PodContext) -> Iterator[FieldError]:
    path = path.child("volumeMounts")
    devices = {
        device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices", ())
    }
    paths_of_devices, mount_paths = {*devices.values()}, set[str]()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        item_path, name, mount_path = path.index(index), mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield errors.required(item_path.child("name"))
        if name not in pod_context.volumes:
            yield errors.not_found(item_path.child("name"), name)
        if not mount_path:
            yield errors.required(item_path.child("mountPath"))
        if mount_path in mount_paths:
            yield errors.invalid(item_path.child("mountPath"), mount_path, "must be unique")
        mount_paths.add(mount_path)
        if name in devices:
            yield errors.invalid(item_path.child("name"), name, "must not already exist in volumeDevices")
        if mount_path in paths_of_devices:
            problem = "must not already exist as a path in volumeDevices"
            yield errors.invalid(item_path.child("mountPath"), mount_path, problem)
        # With one exception, the errors below are reported at the path of all mounts.
        yield from checks.optional("subPath", check_descending)(mount, path)
        if mount.get("subPathExpr") and mount.get("subPath"):
            problem = "subPathExpr and subPath are mutually exclusive"
            yield errors.invalid(item_path.child("subPathExpr"), mount["subPathExpr"], problem)
        yield from checks.optional("subPathExpr", check_descending)(mount, path)
        yield from _check_propagation(mount, container, path.child("mountPropagation"))
        yield from _check_recursion(mount, path.child("recursiveReadOnly"))
        yield from _check_options(mount, item_path.child("bindMountOptions"), pod_context)


_MOUNT_OPTIONS: Final = ("nodev", "noexec", "nosuid")


def _check_options(mount: ReadOnlyTree, path: Path, pod_context: PodContext) -> Iterator[FieldError]:
    options = mount.get("bindMountOptions") or ()
    seen: set[str] = set()
    for index, option in enumerate(options):
        if option not in _MOUNT_OPTIONS:
            yield errors.not_supported(path.index(index), option, _MOUNT_OPTIONS)
        if option in seen:
            yield errors.duplicate(path.index(index), option)
        seen.add(option)
    if options and pod_context.volumes.get(mount.get("name", ""), {}).get("image") is not None:
        yield errors.invalid(path, options, "bindMountOptions may not be used with image volumes")


def _check_propagation(mount: ReadOnlyTree, container: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return
    yield from _PROPAGATIONS(propagation, path)
    if propagation == _BIDIRECTIONAL and not (container.get("securityContext") or {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        yield errors.forbidden(path, detail)


def _check_recursion(mount: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    recursion = mount.get("recursiveReadOnly")
    if recursion is None:
        return
    if recursion in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield errors.forbidden(path, "may only be specified when readOnly is true")
        if mount.get("mountPropagation") not in (None, _NO_PROPAGATION):
            detail = "may only be specified when mountPropagation is None or not specified"
            yield errors.forbidden(path, detail)
    else:
        yield from _RECURSIONS(recursion, path)


# --- devices


def check_devices(container: ReadOnlyTree, path: Path, pod_context: PodContext) -> Iterator[FieldError]:
    path = path.child("volumeDevices")
    mounts = {
        mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts", ())
    }
    paths_of_mounts = {*mounts.values()}
    names: set[str] = set()
    device_paths: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices", ())):
        item_path, name, device_path = path.index(index), device.get("name", ""), device.get("devicePath", "")
        yield from _check_device_name(name, item_path.child("name"), names, pod_context)
        yield from _check_device_path(device_path, item_path.child("devicePath"), device_paths)
        if name in mounts:
            yield errors.invalid(item_path.child("name"), name, "must not already exist in volumeMounts")
        if device_path in paths_of_mounts:
            problem = "must not already exist as a path in volumeMounts"
            yield errors.invalid(item_path.child("devicePath"), device_path, problem)
        if name:
            names.add(name)


def _check_device_name(
    name: str, path: Path, seen: set[str], pod_context: PodContext
) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path)
    if name in seen:
        yield errors.invalid(path, name, "must be unique")
    volume = pod_context.volumes.get(name)
    if volume is None:
        yield errors.not_found(path, name)
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        problem = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield errors.invalid(path, name, problem)


def _check_device_path(device_path: str, path: Path, seen: set[str]) -> Iterator[FieldError]:
    if not device_path:
        yield errors.required(path)
    if device_path in seen:
        yield errors.invalid(path, device_path, "must be unique")
    if ".." in device_path.split("/"):
        yield errors.invalid(path, device_path, "can not contain backsteps ('..')")
    else:
        seen.add(device_path)
