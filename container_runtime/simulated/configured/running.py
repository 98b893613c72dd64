"""The nginx that runs in a container: the configuration that it has read, and the addresses that it has looked up."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from .nginx.configuration import Configuration

_VERSION: Final = re.compile(r"(\d+\.\d+)(\.\d+)?(?:-.*)?")
_PATCHES: Final = {
    "1.19": 10,
    "1.20": 2,
    "1.21": 6,
    "1.22": 1,
    "1.23": 4,
    "1.25": 5,
    "1.26": 3,
    "1.27": 5,
    "1.29": 4,
}
"""The last patches of series."""


def version_of_tag(tag: str) -> str:
    """Return the version of nginx in an image, such as 1.27.5 for 1.27-alpine; "" if its tag does not say it."""
    match = _VERSION.fullmatch(tag)
    if match is None:
        return ""
    return match[1] + (match[2] or f".{_PATCHES.get(match[1], 0)}")


class RunningServer(Struct):
    """The server of one run of a container, which its programs start and reload."""

    runs: bool = False
    """Whether the first process of the container is the server of its image, with the configuration of the image."""
    runs_entrypoint: bool = False
    """Whether the entrypoint of the image runs before the server."""
    configuration: Configuration | None = None
    """What a program has read; None for the configuration of the image."""
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The addresses of the names that it has looked up at its start; none for one outside of the cluster."""
    requests: int = 0
    write_log: Callable[[int, str], None] = lambda *_: None
    """Writes a line to a descriptor of the container's first process."""
    on_start: Callable[[], None] = lambda: None
    """Called when it has read a configuration."""
    version: str = "1.29.4"
    on_not_simulated: Callable[[str], None] = lambda _: None
    """Called with a directive that changes answers and is not simulated."""

    @property
    def is_running(self) -> bool:
        return self.runs or self.configuration is not None
