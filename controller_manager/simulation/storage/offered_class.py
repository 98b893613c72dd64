"""The storage class `standard`, the default where there is none: claims that name no class are served, too."""

from typing import Any, Final

from apimachinery.status import AlreadyExists
from apimachinery.wellknown import ANNOTATION_DEFAULT_STORAGE_CLASS
from controller_manager.kinds import STORAGE_CLASSES
from controller_manager.runtime.engine import Context, Engine
from controller_manager.runtime.resource import Key
from controller_manager.runtime.worker import Loop
from controller_manager.simulation.storage.provisioner import SIMULATED
from controller_manager.storage.classes import default_class

NAME: Final = "standard"


def offered(*, default: bool) -> dict[str, Any]:
    return {
        "kind": STORAGE_CLASSES.kind,
        "apiVersion": STORAGE_CLASSES.api_version,
        "metadata": {
            "name": NAME,
            "annotations": {ANNOTATION_DEFAULT_STORAGE_CLASS: "true" if default else "false"},
        },
        "provisioner": SIMULATED,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


class Offer:
    """Made once when the manager begins; what a user does with the class then is the user's."""

    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._loop = Loop(
            "simulated-storage-class", self._offer, workers=1, clock=context.clock, metrics=context.metrics
        )

    async def run(self) -> None:
        self._loop.add(Key("", NAME))
        await self._loop.run()

    async def _offer(self, _: Key) -> None:
        present = await self._client.list(STORAGE_CLASSES)
        body = offered(default=default_class(present.items) is None)
        try:
            await self._client.create(STORAGE_CLASSES, body)
        except AlreadyExists:
            return


OFFERED_CLASS: Final = Engine(name="simulated-storage-class", service_account="", build=Offer)
