"""The file with the URLs of a control plane's components, of their health and of the queues of controllers: the manager writes it, the API server reads it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

CONTROLLER_MANAGER: Final = "controller-manager"
SCHEDULER: Final = "scheduler"
CONTROLLERS_PAGE: Final = "controllers-page"
"""What the file calls the page with the queues of the controllers."""


def write_component_urls(path: Path, urls: Mapping[str, str]) -> None:
    """Write the file atomically: a reader gets the complete old content or the complete new content."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(msgspec.json.encode(urls))
    temporary.replace(path)


def read_component_urls(path: Path) -> Mapping[str, str]:
    """Return the URLs by the components' names; none if the file does not exist yet or is not valid."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}
