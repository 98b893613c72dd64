"""The containers of a pod template, which everything that makes pods shows with `-o wide`."""

from typing import Any, Final

from apiserver.resources.columns.parts import items, text
from apiserver.wire.table import Column

CONTAINERS: Final = Column(name="Containers", priority=1)
IMAGES: Final = Column(name="Images", priority=1)
SELECTOR: Final = Column(name="Selector", priority=1)


def names_and_images(template: Any) -> tuple[str, str]:
    """Two cells: of each container the name, and the image."""
    containers = items(template, "spec", "containers")
    return (
        ",".join(text(container, "name") for container in containers),
        ",".join(text(container, "image") for container in containers),
    )
