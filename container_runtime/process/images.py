"""The map from images to local commands: which containers run as processes, and their commands.

folder: .                           the base of relative paths; the default is the folder of the map
images:
  example.org/operator:*:           an image name as in pods; `*` matches any characters
    command: [python3, operator.py] the command in place of the image's entrypoint and a pod's `command`
    entrypoint: [/server]           the command of a pod that has none of its own, as in an image
    args: [--port=$(MOCKUBE_PORT_8080)]  the arguments for a pod that has no `args`
    env: {LOG_LEVEL: debug}         variables of the image; those of a pod override them
    ports: {8080: 0}                the port of this machine for a container's port; 0 chooses a free port
    ready: {httpGet: {path: /healthz, port: 8080}}   the readiness probe of a container that has none
    directory: .                    the working directory
    files: {/operator/manager: bin/manager}   files and folders of the image, which are read-only, by their paths in the container
    user: "1000:1000"               the user and group of a pod that sets none, if mockube runs as root

Without `folder`, the image names may be at the top level. The file may also describe images of simulated containers, whose
entries have `names`. Pure, apart from `load_images`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from posixpath import normpath
from typing import Any, Final

from msgspec import Struct, field

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wildcards import WildcardsTooCostly, matches_wildcards, parse_wildcards
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.container_runtime.images.table import is_description

MAX_BYTES: Final = 1 << 20
_FIELDS: Final = frozenset(
    {"command", "entrypoint", "args", "env", "ports", "ready", "directory", "files", "user"}
)
_USER: Final = re.compile(r"(\d{1,9})(?::(\d{1,9}))?")
_HANDLERS: Final = frozenset({"exec", "httpGet", "tcpSocket", "grpc"})


class ImageMapError(ValueError):
    """A map of images is invalid."""


class LocalImage(Struct, frozen=True, kw_only=True):
    command: Sequence[str] = ()
    """The command; empty for the pod's own command."""
    entrypoint: Sequence[str] = ()
    """The command of a pod that has none."""
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[int, int] = field(default_factory=dict)
    ready: ReadOnlyTree | None = None
    directory: Path | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    """Files and folders of this machine by the paths at which the container has them."""
    user: int | None = None
    """The user; None for that of this process."""
    group: int | None = None
    folder: Path = Path()
    """The base of relative paths: the folder of the map."""


class ImageMap(Struct, frozen=True):
    exact: Mapping[str, LocalImage]
    patterns: Sequence[tuple[str, LocalImage]] = ()

    def find(self, image: str) -> LocalImage | None:
        """Return the image of a name, or else the first whose pattern matches; None if there is none."""
        local_image = self.exact.get(image)
        if local_image is not None:
            return local_image
        return next(
            (local_image for pattern, local_image in self.patterns if matches_wildcards(image, pattern)), None
        )


def load_images(path: Path) -> ImageMap:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ImageMapError(f"{path} has more than {MAX_BYTES} bytes")
        tree = load(path.read_bytes()).tree
    except OSError as error:
        raise ImageMapError(f"{path}: {error.strerror}") from error
    except YamlError as error:
        raise ImageMapError(f"{path}: {error}") from error
    try:
        images, folder = _images_and_folder(tree)
        if isinstance(images, Mapping):  # entries with names describe images of simulated containers
            images = {name: entry for name, entry in images.items() if not is_description(entry)}
        return image_map(images, path.absolute().parent / folder)
    except ImageMapError as error:
        raise ImageMapError(f"{path}: {error}") from error


def _images_and_folder(tree: Any) -> tuple[Any, str]:
    """Return the map of images and the folder of a file, which has the map below `images:` or at the top level."""
    if not isinstance(tree, dict):
        raise ImageMapError("the file must be a map of image names, or have one below `images:`")
    if not tree.keys() & {"images", "folder"}:
        return tree, "."
    others = sorted(str(name) for name in tree.keys() - {"images", "folder"})
    if others:
        raise ImageMapError(f"{', '.join(others)} must be below `images:`; only `folder:` may be beside it")
    folder = tree.get("folder") or "."
    if not isinstance(folder, str):
        raise ImageMapError("folder must be the path of a folder")
    return tree.get("images"), folder


def image_map(images: Any, folder: Path) -> ImageMap:
    if not isinstance(images, Mapping) or not images:
        raise ImageMapError("no images: add at least one, with its command")
    images_by_name = {str(name): _image(str(name), tree, folder) for name, tree in images.items()}
    patterns = [
        (_escape_pattern(name), local_image) for name, local_image in images_by_name.items() if "*" in name
    ]
    for pattern, _ in patterns:
        try:
            parse_wildcards(pattern)
        except WildcardsTooCostly as error:
            raise ImageMapError(str(error)) from error
    return ImageMap(
        {name: local_image for name, local_image in images_by_name.items() if "*" not in name}, patterns
    )


def _escape_pattern(name: str) -> str:
    """Escape all special characters of a pattern except `*`."""
    return name.replace("[", "[[]").replace("?", "[?]")


def _image(name: str, tree: Any, folder: Path) -> LocalImage:
    if tree is None:
        tree = {}
    if not isinstance(tree, Mapping):
        raise ImageMapError(
            f"{name}: must be a map of command, entrypoint, args, env, ports, ready, directory, files and user"
        )
    unknown = sorted(str(key) for key in tree.keys() - _FIELDS)
    if unknown:
        raise ImageMapError(f"{name}: unknown {', '.join(unknown)}; known are {', '.join(sorted(_FIELDS))}")
    directory = tree.get("directory")
    if directory is not None and not isinstance(directory, str):
        raise ImageMapError(f"{name}: directory must be the path of a folder")
    user, group = _user(name, tree.get("user"))
    return LocalImage(
        user=user,
        group=group,
        command=_parse_words(name, "command", tree.get("command")),
        entrypoint=_parse_words(name, "entrypoint", tree.get("entrypoint")),
        args=_parse_words(name, "args", tree.get("args")),
        env=_variables(name, tree.get("env")),
        ports=_ports(name, tree.get("ports")),
        ready=_probe(name, tree.get("ready")),
        directory=None if directory is None else folder / directory,
        files={path: folder / source for path, source in _files(name, tree.get("files")).items()},
        folder=folder,
    )


def _parse_words(name: str, field: str, value: Any) -> Sequence[str]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(word, str | int | float) for word in value):
        raise ImageMapError(f"{name}: {field} must be a list of arguments, not a shell command")
    return tuple(str(word) for word in value)


def _variables(name: str, value: Any) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        isinstance(item, str | int | float) for item in value.values()
    ):
        raise ImageMapError(f"{name}: env must be a map of names to values")
    return {str(variable): str(item) for variable, item in value.items()}


def _ports(name: str, value: Any) -> Mapping[int, int]:
    if value is None:
        return {}
    pairs = dict(value) if isinstance(value, Mapping) else {0: 0}
    # The keys of JSON are strings.
    pairs = {
        int(container_port) if str(container_port).isdecimal() else container_port: local_port
        for container_port, local_port in pairs.items()
    }
    if not all(
        _is_port(container_port) and container_port and _is_port(local_port)
        for container_port, local_port in pairs.items()
    ):
        raise ImageMapError(
            f"{name}: ports must map container ports to ports of this machine; 0 chooses a free one"
        )
    return pairs


def _files(name: str, value: Any) -> Mapping[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(
        _is_file_path(path) and isinstance(source, str) and source for path, source in value.items()
    ):
        raise ImageMapError(
            f"{name}: files must map absolute paths in the container to files or folders of this machine"
        )
    return dict(value)


def _is_file_path(path: Any) -> bool:
    return isinstance(path, str) and path.startswith("/") and path != "/" and normpath(path) == path


def _user(name: str, value: Any) -> tuple[int | None, int | None]:
    match = _USER.fullmatch(str(value)) if isinstance(value, int | str) and value is not True else None
    if value is not None and match is None:
        raise ImageMapError(f'{name}: user must be a number, or "USER:GROUP" with two numbers')
    if match is None:
        return None, None
    return int(match[1]), None if match[2] is None else int(match[2])


def _is_port(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 65536


def _probe(name: str, value: Any) -> ReadOnlyTree | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or len(_HANDLERS & value.keys()) != 1:
        raise ImageMapError(f"{name}: ready must be a probe with one of {', '.join(sorted(_HANDLERS))}")
    return dict(value)
