"""The ConfigMaps and Secrets as they were when the containers that have them in variables, or at a subPath, started.

A change of such an object reaches the volumes of a running container, but neither its variables nor a subPath, as with a real
kubelet. They are in memory only: after a restart of the manager, a container shows the present values.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONTAINER_STATUSES
from mockube.client.kinds import SECRETS
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.container_runtime.config.volumes import names_at_start
from mockube.container_runtime.records import Records

from .start_checks import ReferencedObjects
from .step_effects import PatchObject, Step

_MAX_SECRETS: Final = 1_000
"""The number of Secrets whose values are kept for the next pods."""


class StartedObjects(NamedTuple):
    restarts: int
    config_maps: Mapping[str, ReadOnlyTree]
    secrets: Mapping[str, ReadOnlyTree]


class _StartedRuns(dict[str, StartedObjects]):
    """The objects of the latest run of each container of a pod."""


class StartedValues:
    def __init__(self, records: Records, client: Client) -> None:
        self._records = records
        self._client = client
        self._secrets: dict[Key, ReadOnlyTree] = {}
        """Secrets with their values, which the caches of Secrets do not have."""

    async def note_step(self, pod: ReadOnlyTree, objects: ReferencedObjects, step: Step) -> None:
        """Note the objects of the containers that a step of a pod's life starts."""
        for effect in step.effects:
            if isinstance(effect, PatchObject) and effect.subresource == "status":
                for name, restarts in _running(effect.body):
                    await self._note(pod, name, restarts, objects)

    async def _note(self, pod: ReadOnlyTree, name: str, restarts: int, objects: ReferencedObjects) -> None:
        containers = self._records.find(meta.uid(pod), _StartedRuns) or _StartedRuns()
        if name in containers and containers[name].restarts == restarts:
            return
        container = next(spec for spec in every_container(pod["spec"]) if spec["name"] == name)
        maps, secrets = names_at_start(pod, container)
        if maps or secrets:
            self._records.ensure(meta.uid(pod), _StartedRuns)[name] = StartedObjects(
                restarts,
                {name: tree for name in maps if (tree := objects.config_map(name)) is not None},
                {name: tree for name in secrets if (tree := await self._secret(objects, name)) is not None},
            )

    async def _secret(self, objects: ReferencedObjects, name: str) -> ReadOnlyTree | None:
        """Return a Secret with its values; one version is requested once, by the first of the pods that start with it."""
        cached_secret = objects.secret(name)
        if cached_secret is None:
            return None
        key = Key.of(cached_secret)
        secret = self._secrets.get(key)
        if secret is None or meta.resource_version(secret) != meta.resource_version(cached_secret):
            try:
                secret = await self._client.get(SECRETS, key)
            except (ApiError, NoResponse):
                return None
            if len(self._secrets) >= _MAX_SECRETS:
                self._secrets.clear()
            self._secrets[key] = secret
        return secret

    def find(self, uid: str, container: str, restarts: int) -> StartedObjects | None:
        """Return the objects of a run; None if nothing was noted."""
        objects = (self._records.find(uid, _StartedRuns) or _StartedRuns()).get(container)
        return objects if objects is not None and objects.restarts == restarts else None


def _running(body: ReadOnlyTree) -> Iterator[tuple[str, int]]:
    status = body.get("status") or {}
    for field in CONTAINER_STATUSES:
        for container_status in status.get(field) or ():
            if "running" in (container_status.get("state") or {}):
                yield container_status["name"], container_status.get("restartCount") or 0
