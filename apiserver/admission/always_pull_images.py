"""AlwaysPullImages: an image is always pulled, so that only pods with credentials for it can use it."""

from collections.abc import Iterator
from typing import Any, Final

from mockube.apimachinery import errors
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.registry.registry import Backend
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation

from .plugin import PODS, WRITE, Plugin, forbidden

_ALWAYS: Final = "Always"
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_SPEC: Final = ROOT.child("spec")


class AlwaysPullImages(Plugin):
    operations = WRITE
    targets = PODS

    async def mutate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        if not _has_new_images(attributes, pod):
            return
        spec: Tree = dict(pod["spec"])
        for name in _LISTS:
            if spec.get(name):
                spec[name] = [{**container, "imagePullPolicy": _ALWAYS} for container in spec[name]]
        if spec.get("volumes"):
            spec["volumes"] = [_with_policy(volume) for volume in spec["volumes"]]
        pod["spec"] = spec

    async def validate(self, _backend: Backend, attributes: AdmissionAttributes) -> None:
        pod = attributes.object
        assert pod is not None
        if not _has_new_images(attributes, pod):
            return
        for path, policy in _policies(pod["spec"]):
            if policy != _ALWAYS:
                raise forbidden(attributes, str(errors.not_supported(path, policy, [_ALWAYS])))


def _with_policy(volume: ReadOnlyTree) -> dict[str, Any]:
    image = volume.get("image")
    return {**volume, **({} if image is None else {"image": {**image, "pullPolicy": _ALWAYS}})}


def _has_new_images(attributes: AdmissionAttributes, pod: ReadOnlyTree) -> bool:
    if attributes.operation is not Operation.UPDATE or attributes.old is None:
        return True
    return not _images(pod) <= _images(attributes.old)


def _images(pod: ReadOnlyTree) -> set[str]:
    return {container.get("image", "") for name in _LISTS for container in pod["spec"].get(name) or ()}


def _policies(spec: ReadOnlyTree) -> Iterator[tuple[Path, str]]:
    for name in _LISTS:
        for index, entry in enumerate(spec.get(name) or ()):
            yield _SPEC.child(name).index(index).child("imagePullPolicy"), entry.get("imagePullPolicy", "")
    for index, entry in enumerate(spec.get("volumes") or ()):
        if (image := entry.get("image")) is not None:
            path = _SPEC.child("volumes").index(index).child("image", "pullPolicy")
            yield path, image.get("pullPolicy", "")
