"""The file with the URLs of a control plane's components, of their health and of the queues of controllers: the manager writes it, the API server reads it.

It has the token for the queues, too, so only its owner may read it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

FILE_NAME: Final = "component-urls.json"
CONTROLLER_MANAGER: Final = "controller-manager"
SCHEDULER: Final = "scheduler"
CONTROLLERS_PAGE: Final = "controllers-page"
"""What the file calls the page with the queues of the controllers."""
CONTROLLERS_TOKEN: Final = "controllers-token"  # noqa: S105 - the name of a field
"""What the file calls the bearer token of that page."""


def write_component_urls(path: Path, urls: Mapping[str, str]) -> None:
    """Write the file atomically, for its owner alone: a reader gets the complete old content or the complete new content."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(urls))
    temporary.replace(path)


def read_component_urls(path: Path) -> Mapping[str, str]:
    """Return the URLs by the components' names; none if the file does not exist yet or is not valid."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError):
        return {}
