"""Keeps the contents of volumes of simulated containers as Secrets, so that they outlive the manager, and are in snapshots.

kind: Secret
type: mockube.dev/volume-contents
metadata:
  namespace: kube-system
  name: mockube-volume-5f0c…         mockube-node-NAME for the host paths of a node, mockube-pod-UID-NAME for an emptyDir
  annotations: {mockube.dev/volume: volume/5f0c…/pv-1}
data: {contents: …}                  compressed lines of JSON

They are written some seconds after a change, and when the manager ends. Those of a PersistentVolume and of a node belong to it, so that
the garbage collector deletes them. Secrets that others change, as a restored snapshot does, replace what is in memory.
"""

import logging
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import NAMESPACE_SYSTEM, PREFIXES_OF_CONTENTS
from mockube.client import kinds
from mockube.client.cache.store import Change
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.client.wire import NoResponse
from mockube.container_runtime.volume_contents import (
    OF_NODE,
    OF_POD,
    OF_VOLUME,
    ContentsSource,
    EncodedContents,
    Volume,
)

from .settings import KubeletContext

LOG: Final = logging.getLogger(__name__)

TYPE: Final = "mockube.dev/volume-contents"
VOLUME: Final = "mockube.dev/volume"
"""The annotation that names the volume."""
_BY_POD: Final = "pod-of-contents"
"""The index of Secrets by the uid of the pod whose emptyDir they have."""
_DATA: Final = "contents"
_DELAY: Final = timedelta(seconds=1)
"""The delay after a change of contents that were not written for a while."""
_PAUSE: Final = 5.0
"""The minimum time between two writes of the same contents, in seconds."""
_BYTES_PER_SECOND: Final = 64 << 10
"""The size of contents for each second of the pause after them: large ones are written less often."""
_PAUSE_OF_EACH: Final = 0.05
"""The pause in seconds for each volume with contents, so that many volumes are not written more often in all than 20 times a second."""
_MAX_TOTAL: Final = 64 << 20
"""The maximum size of all contents together, in the store of the API server."""
_END_SECONDS: Final = 5.0
"""How long the end of the manager waits for each of the last writes."""
_NAMED: Final = 5
"""The number of files that a message names."""
NOT_KEPT: Final = "ContentsNotKept"
LOST: Final = "ContentsLost"


class KeptContents:
    """A `VolumeContents` in the store of the API server."""

    def __init__(self, context: KubeletContext) -> None:
        self._client, self._clock = context.client, context.clock
        self._secrets = context.informers.of(kinds.SECRETS)
        self._pods = context.informers.of(kinds.PODS)
        self._nodes = context.informers.of(kinds.NODES)
        self._volumes = context.informers.of(kinds.PERSISTENT_VOLUMES)
        self._recorder = context.recorder.of("kubelet")
        self._source: ContentsSource | None = None
        self._on_node_change: list[Callable[[str], None]] = []
        self._on_node_loss: list[Callable[[str], None]] = []
        self._changed: dict[Key, Volume] = {}
        """The volumes whose present contents are not written yet."""
        self._replaced: dict[Key, Volume] = {}
        """The volumes whose Secret may have been changed by others."""
        self._versions: dict[Key, int] = {}
        """The resourceVersions of what this process has written or read."""
        self._keys_of_pods: dict[str, set[Key]] = {}
        """The keys of the emptyDirs of pods, by the pod's uid."""
        self._unused: set[Key] = set()
        """The Secrets of emptyDirs whose pods do not exist any more."""
        self._sizes: dict[Key, int] = {}
        self._next_writes: dict[Key, float] = {}
        """When the contents may be written again, in the monotonic time of waits that spare work."""
        self._left_out: dict[Key, tuple[str, ...]] = {}
        """The files that were reported as too large."""
        self._secrets.add_index(_BY_POD, _pod_of_secret)
        self._secrets.add_handler(self._on_secret_change)
        self._volumes.add_handler(self._on_volume_change)
        self._loop = ReconcileLoop(
            "volume-contents", self._reconcile, workers=1, clock=context.clock, metrics=context.metrics
        )

    # --- what a run-time asks

    def connect(self, source: ContentsSource) -> None:
        self._source = source

    def is_kept(self, volume: Volume) -> bool:
        secret = self._secrets.lister.get(*_key(volume))
        return secret is not None and secret.get("type") == TYPE

    async def load(self, volume: Volume) -> bytes | None:
        key = self._key_of(volume)
        try:
            secret = await self._client.get(kinds.SECRETS, key)
        except NotFound:
            return None
        except (ApiError, NoResponse) as error:
            self.note_loss(volume, str(error))
            return None
        self._versions[key] = _version(secret)
        try:
            return b64decode((secret.get("data") or {}).get(_DATA) or "", validate=True)
        except ValueError:
            return b""

    def note_change(self, volume: Volume) -> None:
        self._report_node_change(volume)
        key = self._key_of(volume)
        if key not in self._changed:
            self._changed[key] = volume
            pause = self._next_writes.get(key, 0.0) - self._clock.coalescing.monotonic()
            self._loop.add_coalesced(key, max(_DELAY, timedelta(seconds=pause)))

    def note_loss(self, volume: Volume, problem: str) -> None:
        message = (
            f"The kept contents of {_description(volume)} are lost, because they cannot be read: {problem}"
        )
        LOG.warning(message)
        self._record(volume, LOST, message)

    def remove_pod(self, uid: str) -> None:
        keys = self._keys_of_pods.pop(uid, set())
        for key in {*keys, *map(Key.of, self._secrets.lister.by_index(_BY_POD, uid))}:
            self._changed.pop(key, None)
            self._versions.pop(key, None)
            self._sizes.pop(key, None)
            self._next_writes.pop(key, None)
            self._left_out.pop(key, None)
            self._add_unused(key)

    def _add_unused(self, key: Key) -> None:
        self._unused.add(key)
        self._loop.add(key)

    def _key_of(self, volume: Volume) -> Key:
        key = _key(volume)
        if volume[0] == OF_POD:
            self._keys_of_pods.setdefault(volume[1], set()).add(key)
        return key

    # --- the work of the manager

    def on_node_change(self, handler: Callable[[str], None]) -> None:
        """Call the handler with the name of a node when files on it may have changed."""
        self._on_node_change.append(handler)

    def on_node_loss(self, handler: Callable[[str], None]) -> None:
        """Call the handler with the name of a node whose changed files others have deleted."""
        self._on_node_loss.append(handler)

    def _report_node_change(self, volume: Volume) -> None:
        for handler in self._on_node_change if volume[0] == OF_NODE else ():
            handler(volume[1])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Write what has changed at the end of the block."""
        try:
            yield
        finally:
            self._client = self._client.with_timeout(_END_SECONDS)
            try:
                for key, volume in [*self._changed.items()]:
                    await self._write(key, volume)
            except (ApiError, NoResponse) as error:
                names = ", ".join(map(_description, self._changed.values()))
                LOG.warning("The latest contents of %s are lost: %s", names, error)

    async def run(self) -> None:
        for informer in (self._secrets, self._pods, self._volumes):
            await informer.wait_synced()
        uids = {pod.uid for pod in self._pods.lister.all()}
        for uid in self._secrets.lister.index_counts(_BY_POD).keys() - uids:
            self.remove_pod(uid)
        await self._loop.run()

    async def load_nodes(self) -> None:
        """Load what was written on nodes: kubelets look for files there before a container has mounted them."""
        await self._secrets.wait_synced()
        assert self._source is not None
        for secret in self._secrets.lister.all():
            volume = _volume_of(secret)
            if volume and volume[0] == OF_NODE:
                self._source.replace(volume, await self.load(volume))

    def _on_secret_change(self, change: Change) -> None:
        """Note a Secret that others may have changed or deleted; its reconciliation knows the writes of this process."""
        secret = change.last_known
        if secret.get("type") != TYPE:
            return
        key, volume = Key.of(secret), _volume_of(secret)
        known = self._versions.get(key)
        if volume and known is not None and (change.new is None or _version(secret) > known):
            self._replaced[key] = volume
            self._loop.add(key)

    def _on_volume_change(self, change: Change) -> None:
        if change.new is None and self._source is not None:
            volume = change.last_known
            self._source.drop((OF_VOLUME, meta.uid(volume), meta.name(volume)))

    async def _reconcile(self, key: Key) -> None:
        if (replaced := self._replaced.pop(key, None)) is not None:
            await self._replace(key, replaced)
        if (changed := self._changed.get(key)) is not None:
            size = await self._write(key, changed)
            pause = max(_PAUSE, size / _BYTES_PER_SECOND, len(self._versions) * _PAUSE_OF_EACH)
            self._next_writes[key] = self._clock.coalescing.monotonic() + pause
        if key in self._unused:
            await self._delete_unused(key)

    async def _replace(self, key: Key, volume: Volume) -> None:
        secret = self._secrets.lister.get(*key)
        known = self._versions.get(key, 0)
        if secret is not None and _version(secret) <= known:
            return  # This process has written it.
        assert self._source is not None
        self._changed.pop(key, None)
        if secret is None:
            self._versions.pop(key, None)
        self._source.replace(volume, None if secret is None else await self.load(volume))
        for handler in self._on_node_loss if secret is None and volume[0] == OF_NODE else ():
            handler(volume[1])
        self._report_node_change(volume)

    async def _delete_unused(self, key: Key) -> None:
        """Delete the contents of an emptyDir whose pod does not exist any more."""
        if self._secrets.lister.get(*key) is not None:
            await self._client.delete(kinds.SECRETS, key)
        self._unused.discard(key)

    async def _write(self, key: Key, volume: Volume) -> int:
        """Write the contents of a volume, if there are any and something has changed; return their size."""
        assert self._source is not None
        del self._changed[key]
        try:
            contents = await self._source.encoded(volume)
            owner = self._owner(volume)
            if contents is None or owner is None:
                return 0
            await self._write_secret(key, volume, owner, contents)
        except BaseException:
            self._changed.setdefault(key, volume)
            raise
        return len(contents.data)

    async def _write_secret(
        self, key: Key, volume: Volume, owner: dict[str, Any], contents: EncodedContents
    ) -> None:
        total = sum(self._sizes.values()) - self._sizes.get(key, 0)
        if total + len(contents.data) > _MAX_TOTAL:
            self._report_left_out(key, volume, ("all files",))
            return
        self._report_left_out(key, volume, contents.left_out)
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": TYPE,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "annotations": {VOLUME: "/".join(volume)},
                **owner,
            },
            "data": {_DATA: b64encode(contents.data).decode()},
        }
        try:
            if self._secrets.lister.get(*key) is None and key not in self._versions:
                written = await self._client.create(kinds.SECRETS, body)
            else:
                written = await self._client.update(kinds.SECRETS, body)
        except AlreadyExists:
            written = await self._client.update(kinds.SECRETS, body)
        except NotFound:
            written = await self._client.create(kinds.SECRETS, body)
        self._versions[key], self._sizes[key] = _version(written), len(contents.data)

    def _owner(self, volume: Volume) -> dict[str, Any] | None:
        """Return the owner references of the contents of a volume; None if the volume does not exist any more."""
        if volume[0] == OF_POD:
            return {}  # A pod has another namespace. The run-time drops the contents of a deleted one.
        resource, informer = (
            (kinds.NODES, self._nodes) if volume[0] == OF_NODE else (kinds.PERSISTENT_VOLUMES, self._volumes)
        )
        owner = informer.lister.get("", volume[-1])
        if owner is None or (volume[0] == OF_VOLUME and meta.uid(owner) != volume[1]):
            return None
        reference = {
            "apiVersion": "v1", "kind": resource.kind, "name": meta.name(owner), "uid": meta.uid(owner)
        }  # fmt: skip
        return {"ownerReferences": [reference]}

    # --- messages

    def _report_left_out(self, key: Key, volume: Volume, left_out: tuple[str, ...]) -> None:
        if not left_out or self._left_out.get(key) == left_out:
            return
        self._left_out[key] = left_out
        more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
        message = (
            f"{_description(volume)} has too many bytes to keep: {', '.join(left_out[:_NAMED])}{more} will be lost when the "
            "controller manager ends"
        )
        LOG.warning(message)
        self._record(volume, NOT_KEPT, message)

    def _record(self, volume: Volume, reason: str, message: str) -> None:
        """Record an Event on the pod, on the node, or on the claim of a volume."""
        host, about = "", self._object_of(volume)
        if about is not None:
            self._recorder.record_on(host, about, "Warning", reason, message)

    def _object_of(self, volume: Volume) -> ReadOnlyTree | None:
        if volume[0] == OF_POD:
            return next((pod.object for pod in self._pods.lister.all() if pod.uid == volume[1]), None)
        if volume[0] == OF_NODE:
            return self._nodes.lister.get("", volume[1])
        persistent = self._volumes.lister.get("", volume[2])
        claim = None if persistent is None else persistent["spec"].get("claimRef")
        if not claim:
            return persistent
        metadata = {name: claim.get(name) for name in ("name", "namespace", "uid")}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}


def _key(volume: Volume) -> Key:
    name = volume[1] if volume[0] != OF_POD else f"{volume[1]}-{volume[2]}"
    return Key(NAMESPACE_SYSTEM, f"{PREFIXES_OF_CONTENTS[volume[0]]}-{name}")


def _volume_of(secret: ReadOnlyTree) -> Volume | None:
    volume = tuple(meta.annotations(secret).get(VOLUME, "").split("/"))
    return (
        volume
        if secret.get("type") == TYPE and len(volume) > 1 and volume[0] in PREFIXES_OF_CONTENTS
        else None
    )


def _pod_of_secret(secret: ReadOnlyTree) -> Iterable[str]:
    """Return the uid of the pod whose emptyDir has its contents in a Secret."""
    volume = _volume_of(secret)
    return (volume[1],) if volume and volume[0] == OF_POD else ()


def _description(volume: Volume) -> str:
    if volume[0] == OF_POD:
        return f"the volume {volume[2]} of the pod with the uid {volume[1]}"
    if volume[0] == OF_NODE:
        return f"the host paths of node {volume[1]}"
    return f"the volume {volume[2]}"


def _version(tree: ReadOnlyTree) -> int:
    return int(meta.resource_version(tree) or 0)
