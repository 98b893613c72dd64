"""The list of the servers with a configuration: by which images they are known, how these start them, and their programs."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from mockube.container_runtime.images.table import Image
from mockube.container_runtime.simulated.shell.process import Process, Program, Run


class ServerKind(Struct, frozen=True, kw_only=True):
    folder: str
    """The folder of the configuration, by which an image with the server is known."""
    programs: Mapping[str, Program]
    command: tuple[str, ...]
    """What the entrypoint of the image runs without arguments."""
    places: tuple[str, ...] = ()
    """Other folders that the server uses, such as those of its logs."""
    has_default: bool = True
    """Whether the image has a configuration; otherwise the server reads one in any case."""


def _nginx(process: Process) -> Run:
    from .nginx import nginx  # noqa: PLC0415 - for few

    return (yield from nginx(process))


KINDS: Final = (
    ServerKind(
        folder="/etc/nginx",
        programs=dict.fromkeys(("nginx", "nginx-debug"), _nginx),
        command=("nginx", "-g", "daemon off;"),
        places=("/var/log/nginx",),
    ),
)

PROGRAMS: Final[Mapping[str, Program]] = {
    name: program for kind in KINDS for name, program in kind.programs.items()
}


def kind_of(image: Image) -> ServerKind | None:
    """Return the server of an image whose configuration is known; None if it is not simulated."""
    for kind in KINDS:
        if kind.folder in image.configuration:
            is_known = any(path.startswith(f"{kind.folder}/") for path in image.files)
            return kind if is_known or not kind.has_default else None
    return None
