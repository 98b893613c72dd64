"""The files that a simulated node has: those of a usual Linux node, and those that pods or an annotation of the node add. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from posixpath import dirname, normpath
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.node_paths import DIRECTORY, FILE, NODE_PATHS, SOCKET, with_parents

HOST_PATHS: Final = "mockube.dev/host-paths"
"""The annotation of a node that lists further paths, such as "/data, /run/docker.sock=Socket"; the default type is Directory."""
_TYPES: Final = (DIRECTORY, FILE, SOCKET, "CharDevice", "BlockDevice")
CREATED_TYPES: Final[Mapping[str, str]] = {"DirectoryOrCreate": DIRECTORY, "FileOrCreate": FILE}
"""The type of what a kubelet creates for a host path that does not exist, by the volume's type."""
PathType = Callable[[str], str]
"""Returns the type of a path on the node; "" if there is none."""


def path_type(path: str, node: ReadOnlyTree, pods: Iterable[ReadOnlyTree]) -> str:
    """Return the type of a path on a node; "" if there is none. `pods` are those of the node, which create host paths."""
    path = normpath(path)
    file_type = NODE_PATHS.get(path) or with_parents(_annotated_paths(node)).get(path)
    return file_type or _created_paths(pods).get(path) or ""


def _annotated_paths(node: ReadOnlyTree) -> Iterator[tuple[str, str]]:
    """Yield the valid entries of the node's annotation; `host_path_problems` names the others."""
    for path, file_type in _entries(node):
        if not _problem(path, file_type):
            yield normpath(path), file_type


def host_path_problems(node: ReadOnlyTree) -> list[str]:
    """Return what is wrong with the entries of the node's annotation, which are ignored."""
    return [
        f"{HOST_PATHS}: {problem}"
        for path, file_type in _entries(node)
        if (problem := _problem(path, file_type))
    ]


def _problem(path: str, file_type: str) -> str:
    if not path.startswith("/"):
        return f"{path!r}: must be an absolute path"
    return "" if file_type in _TYPES else f"{path}={file_type}: the type must be one of {', '.join(_TYPES)}"


def _entries(node: ReadOnlyTree) -> Iterator[tuple[str, str]]:
    for entry in meta.annotations(node).get(HOST_PATHS, "").split(","):
        path, equals, file_type = (part.strip() for part in entry.partition("="))
        if path or equals:
            yield path, file_type if equals else DIRECTORY


def _created_paths(pods: Iterable[ReadOnlyTree]) -> dict[str, str]:
    """Return what the kubelet has created for the pods. It creates the parents of directories only."""
    created: dict[str, list[str]] = {DIRECTORY: [], FILE: []}
    for pod in pods:
        for volume in pod["spec"].get("volumes") or ():
            source = volume.get("hostPath") or {}
            file_type = CREATED_TYPES.get(source.get("type") or "")
            if file_type:
                created[file_type].append(normpath(source["path"]))
    folders = with_parents((path, DIRECTORY) for path in created[DIRECTORY])
    folders_of_node = {**folders, **NODE_PATHS} if created[FILE] else {}
    files = {path: FILE for path in created[FILE] if folders_of_node.get(dirname(path)) == DIRECTORY}
    return {**files, **folders}
