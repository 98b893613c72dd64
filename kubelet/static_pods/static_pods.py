"""Runs the static pods of nodes: creates, replaces and deletes their mirror pods as the manifests say.

A simulated kubelet runs the mirror pod itself. Where a client deletes one, the kubelet creates it anew with the status that it
had: its containers have never stopped.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, ApiError, NotFound
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.client import kinds
from mockube.client.cache.store import Change
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.podview import PodView
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.container_runtime.runtime import ContainerRuntime
from mockube.container_runtime.volume_contents import OF_NODE
from mockube.kubelet.installation import peers_of, with_addresses
from mockube.kubelet.kept_contents import KeptContents
from mockube.kubelet.node_objects import has_active_kubelet, internal_ip
from mockube.kubelet.running_programs import program_of, programs_of, running_programs
from mockube.kubelet.settings import KubeletContext

from .manifests import FOLDER, MAX_FILES, ManifestError, hash_of, is_mirror, mirror_pod, static_pod

LOG: Final = logging.getLogger(__name__)

FAILED: Final = "FailedStaticPod"
"""The reason of the event on a node whose manifest cannot be run, which a real kubelet only logs."""
_RETRY: Final = timedelta(seconds=10)
"""The time after which a pod that the API server refuses is tried again."""
_PEERS: Final = timedelta(seconds=10)
"""How long after the start the files of a node wait for the addresses of other nodes."""
_RETRY_PEERS: Final = timedelta(milliseconds=50)
_RAN_BEFORE: Final = timedelta(seconds=30)
"""How long the static pods of an installation have run when the API server shows them."""
_QUIET: Final = timedelta(milliseconds=100)
"""The time after a write in which a program may write more of a manifest."""
_TERMINATION: Final = timedelta(milliseconds=500)
"""How long a mirror pod that a client has deleted is there. kubectl lists pods by this name before it waits for the deletion, and would
wait for that of the next mirror pod if it found that one.
"""


class StaticPod(Struct, frozen=True):
    """A pod of a manifest."""

    pod: Tree
    seen: str
    """When the kubelet first had it."""


class StaticPods:
    def __init__(
        self,
        context: KubeletContext,
        runtime: ContainerRuntime,
        contents: KeptContents,
    ) -> None:
        self._client, self._clock = context.client, context.clock
        self._created = context.clock.now()
        self._runtime = runtime
        self._nodes = context.informers.of(kinds.NODES)
        self._pods = context.informers.of(kinds.PODS)
        self._recorder = context.recorder.of("kubelet")
        self._contents = contents
        self._installation = context.settings.installation.files
        self._files = dict(self._installation)
        """The files that nodes have from their installation, and that are not written yet."""
        self._programs = running_programs(context)
        self._installed = set[str]()
        """The hashes of the static pods in these files."""
        self._desired: dict[str, dict[Key, StaticPod]] = {}
        """The static pods of each node by the keys of their mirror pods."""
        self._statuses: dict[Key, tuple[str, ReadOnlyTree]] = {}
        """The hashes and the last statuses of mirror pods that clients have deleted."""
        self._parsed: dict[tuple[str, str], tuple[bytes, Tree]] = {}
        """The manifests that were read, by the node and the path."""
        self._problems: dict[tuple[str, str], str] = {}
        """What was reported of a node's manifest, by the node and the path, or the name of the pod."""
        self._loop = ReconcileLoop(
            "static-pods", self._reconcile, workers=1, clock=context.clock, metrics=context.metrics
        )
        contents.on_node_change(self._on_files_change)
        contents.on_node_loss(self._on_files_loss)
        self._nodes.add_handler(self._on_node_change)
        self._pods.add_handler(self._on_pod_change)

    async def run(self) -> None:
        for node, texts in self._files.items():
            if not self._contents.is_kept((OF_NODE, node)):
                # They have run before the API server answered, and nobody has changed their manifests.
                self._programs.set(node, dict.fromkeys(map(_program_of_manifest, texts), 0))
        await self._loop.run()

    def owns(self, pod: ReadOnlyTree) -> bool:
        """Return whether a pod is the mirror pod of a present manifest, whose containers no client can stop."""
        node = pod["spec"].get("nodeName") or ""
        desired = self._desired.get(node, {}).get(Key.of(pod)) if is_mirror(pod) else None
        return desired is not None and hash_of(desired.pod) == hash_of(pod)

    def status_to_restore(self, pod: ReadOnlyTree) -> ReadOnlyTree | None:
        """Return the status of the mirror pod in whose place another one was created; None if it has its own already."""
        digest, status = self._statuses.get(Key.of(pod), ("", None))
        has_begun = "startTime" in (pod.get("status") or {})
        return status if digest == hash_of(pod) and not has_begun and is_mirror(pod) else None

    def time_of_step(self, pod: ReadOnlyTree, now: datetime) -> datetime:
        """Return the time at which a pod takes its next step: those of an installation have started before the API server answered."""
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        has_started = any({"running", "terminated"} & {*(status.get("state") or {})} for status in statuses)
        has_started = has_started or any(status.get("restartCount") for status in statuses)
        return now if has_started or hash_of(pod) not in self._installed else now - _RAN_BEFORE

    def _on_files_change(self, node: str) -> None:
        self._loop.add_coalesced(Key("", node), _QUIET)

    def _on_files_loss(self, node: str) -> None:
        """Write the files of the installation again, as they were before anyone had changed them."""
        if node in self._installation:
            self._files[node] = self._installation[node]

    def _on_node_change(self, change: Change) -> None:
        old, new, name = change.old, change.new, meta.name(change.last_known)
        if new is None:
            self._desired.pop(name, None)
        elif (
            old is None
            or meta.uid(old) != meta.uid(new)
            or has_active_kubelet(old) != has_active_kubelet(new)
        ):
            self._loop.add(Key("", name))

    def _on_pod_change(self, change: Change) -> None:
        """Undo the deletion of a mirror pod, and note which programs run."""
        old: PodView | None = change.old
        new: PodView | None = change.new
        last = new or old
        assert last is not None
        if not is_mirror(last.object):
            return
        if old is not None and (new is None or new.uid != old.uid):
            if self.owns(old.object):
                self._statuses[old.key] = hash_of(old.object), old.object.get("status") or {}
            self._loop.add(Key("", old.node))
        if new is not None and old is None:
            self._loop.add(Key("", new.node))
        elif new is not None and new.deleting:
            self._loop.add_coalesced(Key("", new.node), _TERMINATION)
        self._note_programs(last.node)

    async def _reconcile(self, key: Key) -> timedelta | None:
        node = self._nodes.lister.get("", key.name)
        if node is None:
            return None
        if not has_active_kubelet(node):
            self._note_programs_before(key.name)
            return None
        if not self._write_installed_files(node):
            return _RETRY_PEERS
        files = self._runtime.node_files(key.name, FOLDER)
        if files is None:
            return None  # Nobody has written files on the node, whose pods another cluster's kubelet may have run.
        desired = self._desired[key.name] = self._read(node, files)
        self._note_programs(key.name)
        present = {
            pod.key: pod for pod in self._pods.lister.by_index(BY_NODE, key.name) if is_mirror(pod.object)
        }
        for pod in present.values():
            await self._sync_present(pod, desired.get(pod.key))
        created = [await self._create(node, desired[pod_key]) for pod_key in desired.keys() - present.keys()]
        return None if all(created) else _RETRY

    def _note_programs(self, node: str) -> None:
        """Note which programs run on a node. Without its kubelet, or without the node, they go on as they were."""
        desired = self._desired.get(node)
        if desired is not None:
            running = (self._running_programs(key, static.pod) for key, static in desired.items())
            self._programs.set(node, dict(chain.from_iterable(running)))

    def _note_programs_before(self, node: str) -> None:
        """Note what runs on a node whose kubelet was stopped before this manager began: its mirror pods show it."""
        if node not in self._desired:
            pods = (pod.object for pod in self._pods.lister.by_index(BY_NODE, node) if is_mirror(pod.object))
            running = (programs_of(pod, pod.get("status") or {}) for pod in pods)
            self._programs.set(node, dict(chain.from_iterable(running)))

    def _running_programs(self, key: Key, pod: Tree) -> Iterable[tuple[str, int]]:
        present = self._pods.lister.get(*key)
        is_shown = present is not None and hash_of(present.object) == hash_of(pod)
        status = present.object.get("status") or {} if present is not None and is_shown else {}
        if "containerStatuses" in status:
            return programs_of(pod, status)
        digest, last = self._statuses.get(key, ("", None))
        if last is not None and digest == hash_of(pod):
            return programs_of(pod, last)
        is_installed = hash_of(pod) in self._installed
        return ((program_of(each), 0) for each in pod["spec"]["containers"] if is_installed)

    def _write_installed_files(self, node: ReadOnlyTree) -> bool:
        """Write the files that a node has from its installation, unless an earlier manager has kept later ones.

        Return False while they need the address of another node, which may be registered soon.
        """
        is_kept = self._contents.is_kept((OF_NODE, meta.name(node)))
        texts = {} if is_kept else self._files.get(meta.name(node), {})
        peers = self._addresses(peers_of(texts.values()))
        if not all(peers.values()) and self._clock.now() - self._created < _PEERS:
            return False
        self._files.pop(meta.name(node), None)
        if texts:
            address = internal_ip(node)
            files = {path: with_addresses(text, address, peers).encode() for path, text in texts.items()}
            self._runtime.add_node_files(meta.name(node), files)
            manifests = {path.removeprefix(f"{FOLDER}/"): data for path, data in files.items()}
            self._installed |= {hash_of(static.pod) for static in self._read(node, manifests).values()}
        return True

    def _addresses(self, names: Iterable[str]) -> dict[str, str]:
        """Return the addresses of nodes by name; "" for a node that is not there."""
        return {name: internal_ip(self._nodes.lister.get("", name) or {}) for name in names}

    def _read(self, node: ReadOnlyTree, files: Mapping[str, bytes]) -> dict[Key, StaticPod]:
        """Return the static pods of a node's manifests; those that cannot be read are reported, and are none."""
        name = meta.name(node)
        known, desired = self._desired.get(name, {}), dict[Key, StaticPod]()
        visible = sorted(file_name for file_name in files if not file_name.startswith("."))
        for file_name in visible[:MAX_FILES]:
            data = files[file_name]
            path, problem = f"{FOLDER}/{file_name}", ""
            try:
                pod = self._parse(data, path, name)
            except ManifestError as error:
                problem = str(error)
            else:
                pod_key = Key.of(pod)
                earlier = known.get(pod_key)
                if earlier is None or hash_of(earlier.pod) != hash_of(pod):
                    earlier = StaticPod(pod, format_time(self._clock.now()))
                desired[pod_key] = earlier
            self._report(node, path, problem and f'Could not process manifest file "{path}": {problem}')
        paths = {f"{FOLDER}/{file_name}" for file_name in files}
        for other in [other for node_name, other in self._problems if node_name == name]:
            if other.startswith("/") and other not in paths:
                self._report(node, other, "")
        for stale in [each for each in self._parsed if each[0] == name and each[1] not in paths]:
            del self._parsed[stale]
        return desired

    def _parse(self, data: bytes, path: str, node: str) -> Tree:
        """Return the pod of a manifest; one that has not changed is not read again."""
        known = self._parsed.get((node, path))
        if known is None or known[0] != data:
            self._parsed.pop((node, path), None)
            known = self._parsed[node, path] = data, static_pod(data, path, node)
        return known[1]

    async def _sync_present(self, pod: PodView, desired: StaticPod | None) -> None:
        """Delete a mirror pod that no manifest has, or another version of it, or one that a client deletes."""
        is_same = desired is not None and hash_of(desired.pod) == hash_of(pod.object)
        with suppress(NotFound):
            if is_same and pod.deleting:
                await self._client.delete(kinds.PODS, pod.key, uid=pod.uid, grace_period_seconds=0)
            elif not is_same and not pod.deleting:
                self._statuses.pop(pod.key, None)
                await self._client.delete(kinds.PODS, pod.key, uid=pod.uid)

    async def _create(self, node: ReadOnlyTree, static: StaticPod) -> bool:
        """Create a mirror pod; return False if the API server refuses it."""
        name, problem = meta.namespaced_name(static.pod), ""
        try:
            await self._client.create(kinds.PODS, mirror_pod(static.pod, node, static.seen))
        except AlreadyExists:
            pass  # The cache does not have it yet, or another pod has its name.
        except ApiError as error:
            problem = f'Failed creating a mirror pod for "{name}": {error}'
        self._report(node, name, problem)
        return not problem

    def _report(self, node: ReadOnlyTree, path: str, problem: str) -> None:
        """Report a problem of a manifest once, until it changes."""
        key = meta.name(node), path
        if problem and self._problems.get(key) != problem:
            self._problems[key] = problem
            LOG.error(problem)
            self._recorder.record_on(key[0], node, "Warning", FAILED, problem)
        elif not problem:
            self._problems.pop(key, None)


def _program_of_manifest(path: str) -> str:
    """Return the program of a manifest of an installation, which has its name."""
    return path.rpartition("/")[2].removesuffix(".yaml")
