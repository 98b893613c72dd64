"""The configuration that volumes give to the server of an image, and that is not read: the server runs as without it. Pure."""

from posixpath import normpath

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.volumes import api_volume_names
from mockube.container_runtime.images.options import options_of
from mockube.container_runtime.images.table import Image, behavior_of
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.shell.network_programs.servers.registry import kind_of

from .program import serves


def unread_configuration(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return where a volume has a configuration of a container's server that is not read; "" if there is none.

    Such a volume is of an API object, or an init container of another image mounts it.
    """
    image = behavior_of(container)
    mounts = container.get("volumeMounts") or ()
    if image is None or not mounts or not image.configuration or not serves(container):
        return ""
    if script_of(meta.annotations(pod)).command(container["name"]) is not None or _is_read(container, image):
        return ""
    volumes = api_volume_names(pod) | {
        mount["name"]
        for other in pod["spec"].get("initContainers") or ()
        if other.get("image") != container.get("image")
        for mount in other.get("volumeMounts") or ()
    }
    paths = (normpath(mount["mountPath"]) for mount in mounts if mount["name"] in volumes)
    return next((path for path in paths if any(_overlap(path, place) for place in image.configuration)), "")


def _is_read(container: ReadOnlyTree, image: Image) -> bool:
    """Return whether the configuration of an image is simulated, or its files are checked for options."""
    if image.is_guess:
        return False
    options = (options_of(server, container["image"]) for server in image.servers)
    return kind_of(image) is not None or any(each is not None and each.configuration for each in options)


def _overlap(path: str, place: str) -> bool:
    return f"{path}/".startswith(f"{place}/") or f"{place}/".startswith(f"{path.rstrip('/')}/")
