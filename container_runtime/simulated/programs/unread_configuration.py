"""The configuration that volumes and variables give to the server of an image, and that is not read: it runs as without it. Pure."""

from collections.abc import Iterator
from posixpath import normpath

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.volumes import api_volume_names
from mockube.container_runtime.images.options import options_of
from mockube.container_runtime.images.table import Image, ImageTable
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.shell.network_programs.servers.registry import kind_of

from .program import serves


def unread_configuration(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return the path of a volume or the variable with a configuration of a container's server that is not read; "" without one.

    Such a volume is of an API object, or an init container of another image mounts it.
    """
    image = images.behavior_of(container)
    if image is None or not (image.configuration or image.unread) or not serves(images, container):
        return ""
    if script_of(meta.annotations(pod)).command(container["name"]) is not None:
        return ""
    places = () if _is_read(container, image) else image.configuration
    for path in _mounted_paths(pod, container):
        if any(_overlap(path, place) for place in places) or any(
            _is_in(path, place) for place in image.unread
        ):
            return path
    variables = {entry["name"] for entry in container.get("env") or ()}
    return next((name for name in image.unread if name in variables), "")


def _mounted_paths(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[str]:
    volumes = api_volume_names(pod) | {
        mount["name"]
        for other in pod["spec"].get("initContainers") or ()
        if other.get("image") != container.get("image")
        for mount in other.get("volumeMounts") or ()
    }
    for mount in container.get("volumeMounts") or ():
        if mount["name"] in volumes:
            yield normpath(mount["mountPath"])


def _is_read(container: ReadOnlyTree, image: Image) -> bool:
    """Return whether the configuration of an image is simulated, or its files are checked for options."""
    if image.is_guess:
        return False
    options = (options_of(server, container["image"]) for server in image.servers)
    return kind_of(image) is not None or any(each is not None and each.configuration for each in options)


def _overlap(path: str, place: str) -> bool:
    return _is_in(path, place) or _is_in(place, path.rstrip("/"))


def _is_in(path: str, place: str) -> bool:
    return f"{path}/".startswith(f"{place}/")
