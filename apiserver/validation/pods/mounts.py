"""Where a container sees volumes: as directories, or as devices."""

from collections.abc import Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.file_paths import check_descending
from apiserver.validation.pods.surroundings import Surroundings
from apiserver.validation.rules import Tree, one_of, optional

_BIDIRECTIONAL, _NO_PROPAGATION = "Bidirectional", "None"

_PROPAGATIONS: Final = one_of(_BIDIRECTIONAL, "HostToContainer", _NO_PROPAGATION)
_RECURSIONS: Final = one_of("Disabled", "Enabled", "IfPossible")


def check_mounts(container: Tree, path: Path, around: Surroundings) -> Iterator[FieldError]:
    path = path.child("volumeMounts")
    devices = {
        device.get("name", ""): device.get("devicePath", "") for device in container.get("volumeDevices", ())
    }
    places: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts", ())):
        at, name, place = path.index(index), mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield errors.required(at.child("name"))
        if name not in around.volumes:
            yield errors.not_found(at.child("name"), name)
        if not place:
            yield errors.required(at.child("mountPath"))
        if place in places:
            yield errors.invalid(at.child("mountPath"), place, "must be unique")
        places.add(place)
        if name in devices:
            yield errors.invalid(at.child("name"), name, "must not already exist in volumeDevices")
        if place in devices.values():
            problem = "must not already exist as a path in volumeDevices"
            yield errors.invalid(at.child("mountPath"), place, problem)
        # What follows is, but for one thing, told of at the path of all mounts.
        yield from optional("subPath", check_descending)(mount, path)
        if mount.get("subPathExpr") and mount.get("subPath"):
            problem = "subPathExpr and subPath are mutually exclusive"
            yield errors.invalid(at.child("subPathExpr"), mount["subPathExpr"], problem)
        yield from optional("subPathExpr", check_descending)(mount, path)
        yield from _check_propagation(mount, container, path.child("mountPropagation"))
        yield from _check_recursion(mount, path.child("recursiveReadOnly"))


def _check_propagation(mount: Tree, container: Tree, path: Path) -> Iterator[FieldError]:
    propagation = mount.get("mountPropagation")
    if propagation is None:
        return
    yield from _PROPAGATIONS(propagation, path)
    if propagation == _BIDIRECTIONAL and not (container.get("securityContext") or {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        yield errors.forbidden(path, detail)


def _check_recursion(mount: Tree, path: Path) -> Iterator[FieldError]:
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


def check_devices(container: Tree, path: Path, around: Surroundings) -> Iterator[FieldError]:
    path = path.child("volumeDevices")
    mounts = {
        mount.get("name", ""): mount.get("mountPath", "") for mount in container.get("volumeMounts", ())
    }
    names: set[str] = set()
    places: set[str] = set()
    for index, device in enumerate(container.get("volumeDevices", ())):
        at, name, place = path.index(index), device.get("name", ""), device.get("devicePath", "")
        yield from _check_device_name(name, at.child("name"), names, around)
        yield from _check_device_path(place, at.child("devicePath"), places)
        if name in mounts:
            yield errors.invalid(at.child("name"), name, "must not already exist in volumeMounts")
        if place in mounts.values():
            problem = "must not already exist as a path in volumeMounts"
            yield errors.invalid(at.child("devicePath"), place, problem)
        if name:
            names.add(name)


def _check_device_name(name: str, path: Path, seen: set[str], around: Surroundings) -> Iterator[FieldError]:
    if not name:
        yield errors.required(path)
    if name in seen:
        yield errors.invalid(path, name, "must be unique")
    volume = around.volumes.get(name)
    if volume is None:
        yield errors.not_found(path, name)
    elif volume.get("persistentVolumeClaim") is None and volume.get("ephemeral") is None:
        problem = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield errors.invalid(path, name, problem)


def _check_device_path(place: str, path: Path, seen: set[str]) -> Iterator[FieldError]:
    if not place:
        yield errors.required(path)
    if place in seen:
        yield errors.invalid(path, place, "must be unique")
    if ".." in place.split("/"):
        yield errors.invalid(path, place, "can not contain backsteps ('..')")
    else:
        seen.add(place)
