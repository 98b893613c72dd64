"""The configuration that volumes, variables and options give to the server of an image, and that is not read: it runs as without it. Pure."""

from collections.abc import Sequence
from posixpath import normpath
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.images.options import options_of
from mockube.container_runtime.images.table import Image, ImageTable
from mockube.container_runtime.pod_script import runs_script
from mockube.container_runtime.simulated.shell.programs.installed_servers import kind_of

from .missing_files import may_be_absent
from .program import serves
from .wrong_options import assumed_argument

_OBJECTS: Final = frozenset({"configMap", "secret"})
_WRITTEN_FILES: Final = ("LOG_FILE", "PID_FILE")
"""The ends of the names of variables whose files a server writes."""
_CREDENTIALS: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


def unread_configuration(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return what gives a container's server a configuration that is not read: a volume, a variable or an argument; "" if nothing does.

    What a ConfigMap or a Secret gives to a server counts as its configuration, unless the server serves it as files. What an init
    container of another image writes does so at the paths that the table of images names.
    """
    image = images.behavior_of(container)
    if image is None or not serves(images, container) or runs_script(pod, container):
        return ""
    read = _read_places(container, image)
    places = () if read is None or read else image.configuration
    objects, written = _object_volumes(pod), _written_volumes(pod, container)
    for mount in container.get("volumeMounts") or ():
        path: str = normpath(mount["mountPath"])
        volume = mount["name"]
        is_unread = any(_overlap(path, place) for place in places)
        is_unread |= any(_is_in(path, place) for place in image.unread)
        if is_unread and (volume in objects or volume in written):
            return f"the configuration in {path}"
        if volume in objects and not (read is None or _is_used(path, container, image, read)):
            return f"the configuration in {path}"
    names = [
        *(entry["name"] for entry in container.get("env") or ()),
        *(argument.partition("=")[0] for argument in container.get("args") or ()),
    ]
    if name := next((name for name in names if _is_unread(name, image)), ""):
        return f"the configuration in {name}"
    return assumed_argument(images, pod, container) or _absent_file(image, pod, container)


def _absent_file(image: Image, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return the file that a variable of a server names, and that may not exist; "" if there is none."""
    for entry in container.get("env") or ():
        path = entry.get("value") or ""
        if not (
            entry["name"].endswith("_FILE")
            and path.startswith("/")
            and may_be_absent(path, image, pod, container)
        ):
            continue
        if not entry["name"].endswith(_WRITTEN_FILES):
            return f"the file {path} of the variable {entry['name']}"
    return ""


def _is_unread(name: str, image: Image) -> bool:
    """Return whether a variable, or an option, is one that the server of an image is not simulated with."""
    return any(
        name.startswith(each.removesuffix("*")) if each.endswith("*") else name == each
        for each in image.unread
    )


def _object_volumes(pod: ReadOnlyTree) -> frozenset[str]:
    """Return the names of the volumes with files of ConfigMaps and Secrets, but for those with the credentials of pods."""
    return frozenset(
        volume["name"]
        for volume in pod["spec"].get("volumes") or ()
        if not _OBJECTS.isdisjoint(volume)
        or any(
            not _OBJECTS.isdisjoint(source) for source in (volume.get("projected") or {}).get("sources") or ()
        )
    )


def _written_volumes(pod: ReadOnlyTree, container: ReadOnlyTree) -> frozenset[str]:
    return frozenset(
        mount["name"]
        for other in pod["spec"].get("initContainers") or ()
        if other.get("image") != container.get("image")
        for mount in other.get("volumeMounts") or ()
    )


def _read_places(container: ReadOnlyTree, image: Image) -> Sequence[str] | None:
    """Return where the server reads files that are checked for options; None if all that it reads is simulated."""
    if image.is_guess:
        return ()
    if kind_of(image) is not None:
        return None
    options = (options_of(server, container["image"]) for server in image.servers)
    return [place for each in options if each is not None for place in each.configuration]


def _is_used(path: str, container: ReadOnlyTree, image: Image, read: Sequence[str]) -> bool:
    """Return whether a volume is served as files, has a password or the credentials of the pod, or is where the server reads its options."""
    if _is_in(path, _CREDENTIALS) or any(
        port.root and _is_in(path, port.root) for port in image.ports.values()
    ):
        return True
    files = [
        entry.get("value") or ""
        for entry in container.get("env") or ()
        if entry["name"].endswith("_FILE") and not _is_unread(entry["name"], image)
    ]
    arguments = (*(container.get("command") or ()), *(container.get("args") or ()))
    if any(f"{path}/" in f"{text}/" for text in (*files, *(arguments if read else ()))):
        return True
    return any(_overlap(path, place.partition("*")[0].rstrip("/")) for place in read if place.startswith("/"))


def _overlap(path: str, place: str) -> bool:
    return _is_in(path, place) or _is_in(place, path.rstrip("/"))


def _is_in(path: str, place: str) -> bool:
    return f"{path}/".startswith(f"{place}/")
