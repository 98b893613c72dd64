"""The ConfigMaps and Secrets that pods on simulated nodes refer to, and the pods that wait for one of them.

All pods share one cache of each kind, which is watched from the first pod that refers to an object of the kind. The caches
follow the server independently of the pods' cache, so the server is asked once whether an object is really missing.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_JOB_NAME
from mockube.client.cache.informer import Informer, Informers
from mockube.client.cache.store import Change
from mockube.client.kinds import CLUSTER_TRUST_BUNDLES, CONFIG_MAPS, SECRETS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.client.verbs import AnyResource, Client
from mockube.container_runtime.config.projections import NOT_ISSUED, PodCredential
from mockube.container_runtime.records import Ending, Records

from .pod_certificates import PodCertificates
from .possible_creators import PossibleCreators
from .shared_work import SharedWork

_Object = tuple[AnyResource, Key]
ROOT_CA: Final = "kube-root-ca.crt"
_ANY: Final = Key("", "")
"""Stands for all objects of a resource, such as those that a pod selects by labels."""
_UNPUBLISHED_ROOT_CA: Final = {"data": {"ca.crt": ""}}
_REQUESTED: Final = frozenset({CONFIG_MAPS, SECRETS})
"""The resources of which a missing object is requested from the server. A pod waits longer for storage, and is not refused."""
MAX_ABSENCES: Final = 10_000
"""The number of missing objects that are remembered."""


class _FailedStart(Ending):
    """The last attempt of a pod that could not start."""

    def __init__(
        self, pod: Key, retry_at: datetime, objects: Iterable[_Object], waiting: dict[_Object, set[Key]]
    ) -> None:
        """`waiting` are the pods that wait for each object."""
        self.retry_at = retry_at
        self._pod, self._objects, self._waiting = pod, tuple(objects), waiting
        for obj in self._objects:
            waiting.setdefault(obj, set()).add(pod)

    def end(self) -> None:
        for obj in self._objects:
            pods = self._waiting[obj]
            pods.discard(self._pod)
            if not pods:
                del self._waiting[obj]


class PodObjects:
    """The caches that all pods share."""

    def __init__(  # noqa: PLR0913 - each argument is a dependency
        self,
        records: Records,
        client: Client,
        informers: Informers,
        enqueue: Callable[[Key], None],
        *,
        creators: PossibleCreators,
        certificates: PodCertificates,
        has_root_ca: bool = True,
        attaches_volumes: bool = False,
    ) -> None:
        """`enqueue` is called with the key of a pod when an object that it waits for has changed.

        Without `has_root_ca` nobody may write the ConfigMap of the root CA, which every pod mounts: it counts as present.
        Without `attaches_volumes` nobody may attach volumes, and pods do not wait for that.
        """
        self.has_root_ca = has_root_ca
        self.attaches_volumes = attaches_volumes
        self.certificates = certificates
        certificates.add_handler(enqueue)
        self._records = records
        self._client = client
        self._creators = creators
        self._informers = informers
        self._enqueue = enqueue
        self._watched: dict[AnyResource, Informer[ReadOnlyTree]] = {}
        self._waiting: dict[_Object, set[Key]] = {}
        self._absent_at: dict[_Object, int] = {}
        """The latest revision at which the server did not have an object."""
        self._requests = SharedWork[ReadOnlyTree | None]()
        self._namespaces_of_unknown_programs: set[str] = set()

    def of(self, pod: PodView) -> "ObjectsOfPod":
        return ObjectsOfPod(self, pod)

    def informer(self, resource: AnyResource) -> Informer[ReadOnlyTree]:
        """Return the cache of a kind; it is watched from the first call."""
        informer = self._watched.get(resource)
        if informer is None:
            informer = self._watched[resource] = self._informers.of(resource)
            informer.add_handler(partial(self._on_change, resource))
        return informer

    def retry_at(self, uid: str) -> datetime | None:
        """Return the time of the next attempt to start a pod whose last attempt failed."""
        start = self._records.find(uid, _FailedStart)
        return start.retry_at if start else None

    def note_step(self, pod: PodView, objects: "set[_Object]", retry_at: datetime | None) -> None:
        """Note whether the pod's last step has failed; if so, the pod is enqueued when one of the objects changes."""
        if (earlier := self._records.pop(pod.uid, _FailedStart)) is not None:
            earlier.end()
        if retry_at is not None:
            self._records.put(pod.uid, _FailedStart(pod.key, retry_at, objects, self._waiting))

    def note_run(self, pod: PodView) -> None:
        """Note that a pod runs. A Job's program that is not simulated may create any object, which nobody can know."""
        namespace = pod.key.namespace
        is_new = LABEL_JOB_NAME in pod.labels and namespace not in self._namespaces_of_unknown_programs
        if is_new and self._creators.has_unknown_program(pod.object):
            self._namespaces_of_unknown_programs.add(namespace)

    def note_unknown_program(self, pod: ReadOnlyTree) -> None:
        """Note that a container of a pod has run a program that is not simulated."""
        if LABEL_JOB_NAME in meta.labels(pod):
            self._namespaces_of_unknown_programs.add(meta.namespace(pod))

    async def possible_creators(self, objects: "ObjectsOfPod") -> dict[AnyResource, str]:
        """Return who may have created the objects that a pod lacks, by resource: a program that is not simulated."""
        namespace = objects.namespace
        if namespace in self._namespaces_of_unknown_programs:
            return dict.fromkeys(_REQUESTED, "a Job of its namespace ran")
        creators = {
            resource: await self._creators.find(namespace, resource)
            for resource in {resource for resource, _ in objects.absent}
        }
        return {resource: f"pod {pod} runs" for resource, pod in creators.items() if pod}

    def _on_change(self, resource: AnyResource, change: Change) -> None:
        if not self._waiting:
            return
        for key in (Key.of(change.last_known), _ANY):
            for pod in [*self._waiting.get((resource, key), ())]:
                self._enqueue(pod)

    def is_absent(self, obj: _Object, revision: int) -> bool:
        """Return whether the server did not have the object at the revision, or later."""
        return self._absent_at.get(obj, -1) >= revision

    async def find(self, obj: _Object) -> ReadOnlyTree | None:
        """Return the object when the cache is filled, from the cache or from the server."""
        informer = self.informer(obj[0])
        await informer.wait_synced()
        cached_object = informer.lister.get(*obj[1])
        if cached_object is not None or obj[0] not in _REQUESTED:
            return cached_object
        return await self._requests.run(obj, partial(self._request, obj))

    async def _request(self, obj: _Object) -> ReadOnlyTree | None:
        resource, key = obj
        # A list has a revision also when it is empty.
        object_list = await self._client.list(
            resource, key.namespace, field_selector=f"metadata.name={key.name}"
        )
        if object_list.items:
            return object_list.items[0]
        if len(self._absent_at) >= MAX_ABSENCES:
            self._absent_at.clear()
        self._absent_at[obj] = int(object_list.resource_version)
        return None


class ObjectsOfPod:
    """The objects of one pod's namespace during one step of the pod: `ReferencedObjects` of the start checks."""

    def __init__(self, shared: PodObjects, pod: PodView) -> None:
        self._shared = shared
        self._pod = pod
        self._objects: dict[_Object, ReadOnlyTree] = {}
        """Objects that the caches did not contain yet."""
        self.absent: set[_Object] = set()
        """Objects that neither the caches nor the server contain."""
        self.used: set[_Object] = set()
        self.unknown: set[_Object] = set()
        """Objects that the caches do not contain, and that the server may have."""
        self._unknown_certificates: set[tuple[str, int]] = set()
        """The volumes and sources whose certificates were not requested yet."""
        self._requested: set[tuple[str, int]] = set()
        """Those whose certificates were requested in this step."""

    @property
    def namespace(self) -> str:
        return self._pod.key.namespace

    def config_map(self, name: str) -> ReadOnlyTree | None:
        if name == ROOT_CA and not self._shared.has_root_ca:
            return _UNPUBLISHED_ROOT_CA
        return self._get((CONFIG_MAPS, Key(self._pod.key.namespace, name)))

    def secret(self, name: str) -> ReadOnlyTree | None:
        return self._get((SECRETS, Key(self._pod.key.namespace, name)))

    def trust_bundles(self) -> Iterable[ReadOnlyTree]:
        informer, obj = self._shared.informer(CLUSTER_TRUST_BUNDLES), (CLUSTER_TRUST_BUNDLES, _ANY)
        self.used.add(obj)
        if not informer.is_synced:
            self.unknown.add(obj)
        return informer.lister.all()

    def credential(self, volume: str, index: int) -> PodCredential:
        credential = self._shared.certificates.find(self._pod.uid, volume, index)
        if credential is None and (volume, index) not in self._requested:
            self._unknown_certificates.add((volume, index))
        return credential or PodCredential(problem=NOT_ISSUED)

    @property
    def attaches_volumes(self) -> bool:
        return self._shared.attaches_volumes

    def cached_object(self, resource: AnyResource, name: str) -> ReadOnlyTree | None:
        namespace = self._pod.key.namespace if resource.namespaced else ""
        obj = (resource, Key(namespace, name))
        self.used.add(obj)
        informer = self._shared.informer(resource)
        if not informer.is_synced:
            self.unknown.add(obj)
        return informer.lister.get(*obj[1])

    def _get(self, obj: _Object) -> ReadOnlyTree | None:
        self.used.add(obj)
        informer = self._shared.informer(obj[0])
        tree = informer.lister.get(*obj[1]) or self._objects.get(obj)
        if tree is None and obj[1].name and obj not in self.absent:
            (self.absent if self._is_absent(informer, obj) else self.unknown).add(obj)
        return tree

    def _is_absent(self, informer: Informer[ReadOnlyTree], obj: _Object) -> bool:
        return informer.is_synced and self._shared.is_absent(obj, int(self._pod.resource_version))

    @property
    def has_unknown(self) -> bool:
        """Whether the step needed an object or a certificate that `find_unknown` finds."""
        return bool(self.unknown or self._unknown_certificates)

    async def find_unknown(self) -> None:
        """Find out which of the unknown objects exist, and request the certificates that were not requested yet."""
        unknown, self.unknown = self.unknown, set()
        for obj in sorted(unknown, key=str):
            tree = await self._shared.find(obj)
            if tree is None:
                self.absent.add(obj)
            else:
                self._objects[obj] = tree
        certificates, self._unknown_certificates = self._unknown_certificates, set()
        for volume, index in sorted(certificates):
            self._requested.add((volume, index))
            await self._shared.certificates.ensure(self._pod.object, volume, index)
