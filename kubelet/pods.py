"""The runner of pods on simulated nodes: reconciles a pod when it changes, and when its next step is due.

The steps come from `pod_lifecycle/`, or from the user's stages.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.component_helpers.indexes import BY_NODE, node_of_pod
from mockube.client.kinds import NODES, PODS
from mockube.client.podview import PodView
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.client.verbs import AnyResource
from mockube.component_base.supervision import run_all
from mockube.container_runtime.behavior import NOT_SIMULATED, end_of_handler
from mockube.container_runtime.simulation_values import ASSUME

from .admitted_pods import AdmittedPods
from .disk_pressure import DiskPressure
from .evictions import Evictions
from .image_manager import ImageManager, PodImageAccess
from .memory_pressure import MemoryPressure
from .node_images import NodeImages
from .node_objects import has_active_kubelet, kubelet_minor
from .node_registry import NodeRegistry
from .nodes import EVENT_SOURCE
from .pod_certificates import pod_certificates
from .pod_lifecycle import pod as pod_lifecycle
from .pod_lifecycle.container_status import container_field
from .pod_lifecycle.containers import remaining_grace
from .pod_lifecycle.observations import ProbeResult
from .pod_lifecycle.pod import NodeContext
from .pod_lifecycle.preemption import PREEMPTED_MESSAGE, PREEMPTING
from .pod_lifecycle.unknown_programs import LiveAssumptions, event_of_live_run
from .pod_objects import ObjectsOfPod, PodObjects
from .pod_records import pod_records
from .possible_creators import PossibleCreators
from .probes.live_handlers import LiveHandlers
from .pull_secrets import PullSecrets
from .references import reference_loader
from .runtimes import containers_of_nodes
from .security_profiles import NodeProfiles
from .server.node_counters import kubelet_counters
from .settings import KubeletContext
from .stages.files import load_stages, of_kind
from .stages.runner import StageRunner
from .start_checks import PossibleObjects
from .static_pods.static_pods import StaticPods
from .status_writer import StatusWriter
from .step_effects import EmitEvent, PatchObject, RunHook, StartContainer, Step, StopContainer
from .template_context import TemplateContext
from .waiting_pods import WaitingPods

WORKERS: Final = 16
SyncPod = Callable[[Key, PodView, ReadOnlyTree], Awaitable[timedelta | None]]
"""Executes the step that is due for a pod on its node; returns the delay after which to requeue it."""


class SimulatedPods:
    def __init__(self, context: KubeletContext) -> None:
        settings = context.settings
        containers = containers_of_nodes(context)
        self._runtime = containers.runtime
        self._records = records = pod_records(context)
        self._evictions = Evictions(records, containers.runtime)
        self._contents = containers.contents
        self._units = containers.services.units
        self._started_values = reference_loader(context).started
        self._clock = context.clock
        self._counters = kubelet_counters(context)
        self._nodes = context.informers.of(NODES)
        self._pods = context.informers.of(PODS)
        self._pods.add_index(BY_NODE, node_of_pod)
        self._registry = NodeRegistry(
            self._nodes.lister,
            self._pods.lister,
            details=settings.details,
            waits_for_pod_cidrs=settings.waits_for_pod_cidrs,
            written_type=containers.runtime.node_path_type,
        )
        stages = of_kind("Pod", load_stages(settings.stages))
        self._recorder = context.recorder.of(EVENT_SOURCE if stages else "kubelet", can_wait=not stages)
        host = (lambda _: "") if stages else _node_name
        self._status_writer = StatusWriter(
            records, context.client, self._recorder, PODS, context.clock, host=host
        )
        self._stages = StageRunner(
            records,
            stages,
            self._status_writer,
            TemplateContext.of(self._registry, context.clock).pod_functions,
            clock=context.clock,
            random=context.random,
        )
        self._details = settings.details
        self._predictions = containers.predictions
        self._has_stages = bool(stages)
        self._sync_pod: SyncPod = self._sync_by_stages if stages else self._sync_by_model
        self._loop = ReconcileLoop(
            "simulated-pods", self._reconcile, workers=WORKERS, clock=context.clock, metrics=context.metrics
        )
        self._objects = PodObjects(
            records,
            context.client,
            context.informers,
            self._loop.add,
            creators=PossibleCreators(
                context.client, self._pods.lister, context.clock, containers.predictions
            ),
            certificates=pod_certificates(context),
            has_root_ca=settings.has_root_ca,
            attaches_volumes=settings.attaches_volumes,
        )
        self._static_pods = StaticPods(context, containers.runtime, containers.contents)
        self._node_images = NodeImages(context, self._nodes.lister, containers.images.list_images)
        self._images = ImageManager(
            records,
            containers.images,
            self._nodes.lister,
            self._pods.lister,
            PullSecrets(context.client),
            on_change=self._node_images.add if settings.details else lambda _: None,
        )
        self._admitted_pods = AdmittedPods(self._pods.lister, preempt=self._preempt, enqueue=self._loop.add)
        self._memory_pressure = MemoryPressure(context, containers, self._evictions, self._loop.add)
        self._disk_pressure = DiskPressure(
            context, self._runtime, containers.images, self._evictions, self._loop.add
        )
        if settings.details:
            containers.events.on_scarce_disk(self._disk_pressure.watch)
        self._nodes.add_handler(self._on_node_change)
        self._pods.add_handler(self._on_pod_change)
        self._handlers = LiveHandlers(
            records,
            context.clock,
            self._runtime,
            containers.probe_records.observed,
            on_change=self._loop.add,
            on_failure=self._on_probe_failure,
            on_unknown_program=self._on_unknown_handler_program,
        )
        containers.events.on_change(lambda pod: self._loop.add(Key.of(pod)))
        containers.events.on_unknown_program(self._on_unknown_program)
        self._waiting_pods = WaitingPods(context, containers, self._pods.lister, self._loop.add)

    async def run(self) -> None:
        # No address can be allocated before the addresses in use are known.
        await self._nodes.wait_synced()
        await self._waiting_pods.wait_synced()
        await self._pods.wait_synced()
        await self._contents.load_nodes()
        async with self._contents.running(), self._handlers.running(), self._runtime.running():
            await run_all(
                pods=self._loop.run(),
                contents=self._contents.run(),
                static_pods=self._static_pods.run(),
                images=self._node_images.run(),
                units=self._units.run(),
                memory_pressure=self._memory_pressure.run(),
                disk_pressure=self._disk_pressure.run(),
            )

    def _on_pod_change(self, change: Change) -> None:
        old: PodView | None = change.old
        new: PodView | None = change.new
        self._admitted_pods.on_change(change)
        self._counters.on_pod_change(change)
        if self._details:
            self._memory_pressure.on_pod_change(change)
        if old is not None and (new is None or new.uid != old.uid):
            self._registry.addresses.release(old.uid)
            self._records.remove(old.uid)
            self._runtime.remove_pod(old.uid)
        if new is not None and new.node:
            self._record_address(new)
            # Nothing is due after a write of this runnable until the next step.
            is_own = old is not None and self._status_writer.is_own(old.object, new.object)
            self._status_writer.note_cached(new.object)
            if self._has_stages or not is_own or self._runtime.may_change(new.object):
                self._loop.add(new.key)

    def _on_unknown_program(self, pod: ReadOnlyTree, container: str, program: str, end: str) -> None:
        self._objects.note_unknown_program(pod)
        self._report_unknown_program(pod, container, program, end)

    def _on_unknown_handler_program(
        self, pod: ReadOnlyTree, container: str, program: str, handler: str
    ) -> None:
        fails = self._predictions.unknown_programs(pod) != ASSUME
        self._report_unknown_program(pod, container, program, end_of_handler(handler, fails=fails))

    def _report_unknown_program(self, pod: ReadOnlyTree, container: str, program: str, end: str) -> None:
        event = event_of_live_run(pod, container, program, end)
        if event is not None and self._details:
            node = _node_name(pod)
            self._recorder.record_on(node, pod, event.type, event.reason, event.message, part=event.part)
            if self._records.ensure(meta.uid(pod), LiveAssumptions).add(event):
                self._loop.add(Key.of(pod))

    def _live_assumptions(self, uid: str) -> Sequence[EmitEvent]:
        reported = self._records.find(uid, LiveAssumptions)
        return () if reported is None else reported.events

    def _on_probe_failure(self, pod: ReadOnlyTree, container: str, result: ProbeResult) -> None:
        if self._details:
            part = container_field(pod, container)
            reason, message = result.event_reason, result.message
            self._recorder.record_on(_node_name(pod), pod, "Warning", reason, message, part=part)

    def _record_address(self, pod: PodView) -> None:
        address = (pod.object.get("status") or {}).get("podIP")
        if pod.is_terminal:
            self._registry.addresses.release(pod.uid)
        elif address and not pod.object["spec"].get("hostNetwork"):
            self._registry.addresses.record(pod.uid, address)

    def _on_node_change(self, change: Change) -> None:
        name = meta.name(change.last_known)
        if change.new is None:
            self._admitted_pods.forget_node(name)
            self._memory_pressure.forget_node(name)
            self._disk_pressure.forget_node(name)
            self._counters.forget(name)
            self._images.forget_node(name)
            return
        if change.old is not None and _images(change.old) != _images(change.new):
            self._images.note_status(change.new)
            if self._details:
                self._node_images.add(name)
        if self._affects_pods(change.old, change.new):
            for pod in self._pods.lister.by_index(BY_NODE, name):
                self._loop.add(pod.key)

    def _affects_pods(self, old: ReadOnlyTree | None, new: ReadOnlyTree) -> bool:
        """Return whether a change of a node affects what is due for its pods."""
        got_pod_cidr = (
            old is not None and self._registry.lacks_pod_cidr(old) and not self._registry.lacks_pod_cidr(new)
        )
        return got_pod_cidr or _is_active(old) != _is_active(new)

    async def _reconcile(self, key: Key) -> timedelta | None:
        pod = self._pods.lister.get(*key)
        if pod is None or self._status_writer.is_outdated(pod.object):
            return None
        node = self._registry.active_node(pod.node)
        began, requeue_after = self._clock.monotonic(), None
        if node is not None and (_has_address(pod) or not self._registry.lacks_pod_cidr(node)):
            requeue_after = await self._sync_pod(key, pod, node)
        counters = self._counters.find(pod.node)
        if counters is not None:
            counters.record_sync(pod.object, self._clock.monotonic() - began)
        # The cache may have had the last write, or have removed the pod, before the response arrived.
        present = self._pods.lister.get(*key)
        if present is None or present.uid != pod.uid:
            self._records.remove(pod.uid)
        else:
            self._status_writer.note_cached(present.object)
        return requeue_after

    async def _sync_by_model(self, key: Key, pod: PodView, node: ReadOnlyTree) -> timedelta | None:
        if self._static_pods.owns(pod.object):
            if pod.deleting:
                return None  # the mirror pod only: its containers go on
            if (status := self._static_pods.status_to_restore(pod.object)) is not None:
                await self._status_writer.execute(
                    key, pod.object, [PatchObject(body={"status": status}, kind="merge")]
                )
                return timedelta()
        now = self._static_pods.time_of_step(pod.object, self._clock.now())
        objects = self._objects.of(pod)
        images = self._images.begin(pod, objects, kubelet_minor(node))
        step = self._admitted_pods.admit(pod, node, now) or await self._step(pod, node, objects, images, now)
        written = await self._status_writer.execute(key, pod.object, step.effects)
        self._images.note_step(pod, images)
        if written is not None:
            # The container's environment may have the pod's address, which is in the status that was just written.
            self._act(written, step, now)
        return None if step.requeue_at is None else max(step.requeue_at - self._clock.now(), timedelta())

    def _act(self, pod: ReadOnlyTree, step: Step, now: datetime) -> None:
        """Do with the containers of a pod what a step demands."""
        self._runtime.update_pod(pod)
        for action in step.actions:
            match action:
                case StartContainer(container=name, restarts=restarts):
                    self._runtime.start_container(pod, name, restarts)
                case StopContainer(container=name, grace=grace):
                    self._runtime.stop_container(pod, name, min(remaining_grace(pod, now), grace))
                case RunHook():
                    pass  # by the handlers
        self._handlers.apply(pod, step.actions)
        self._handlers.follow(pod)

    async def _step(
        self, pod: PodView, node: ReadOnlyTree, objects: ObjectsOfPod, images: PodImageAccess, now: datetime
    ) -> Step:
        context = self._registry.context_of(pod, node)
        profiles = NodeProfiles(
            node=node,
            path_type=context.path_type,
            pods=lambda: self._registry.objects_of_pods(pod.node),
            predictions=self._predictions,
        )
        context = replace(
            context,
            objects=objects,
            profiles=profiles,
            retry_at=self._objects.retry_at(pod.uid),
            predictions=self._predictions,
            host_pods=lambda: self._registry.other_host_pods(pod),
            observed=self._handlers.observations(pod.object),
            kills=self._runtime.kills(pod.object),
            live_assumptions=self._live_assumptions(pod.uid),
        )
        step = self._next_step(pod, replace(context, images=images.start(now)), now)
        while objects.has_unknown or images.has_unknown:
            await objects.find_unknown()
            await images.find_unknown()
            step = self._next_step(pod, replace(context, images=images.start(now)), now)
        if not step.is_blocked:
            if not step.lacks_image:
                self._objects.note_run(pod)
        elif creators := await self._objects.possible_creators(objects):
            possible = replace(context, objects=PossibleObjects(objects, creators), images=images.start(now))
            step = self._next_step(pod, possible, now)
            if self._details and not step.is_blocked:
                step = replace(step, effects=(_not_simulated(creators), *step.effects))
        await self._started_values.note_step(pod.object, objects, step)
        self._objects.note_step(pod, objects.used, step.requeue_at if step.is_blocked else None)
        return step

    def _next_step(self, pod: PodView, context: NodeContext, now: datetime) -> Step:
        states = self._runtime.states(pod.object)
        if states:
            context = replace(context, processes=states)
        eviction = self._evictions.find(pod, now)
        if eviction is not None and not pod.deleting and not pod.is_terminal:
            return pod_lifecycle.evict(pod.object, context, eviction, now)
        preempted_at = self._admitted_pods.preemption_time(pod)
        if preempted_at is not None and not pod.deleting and not pod.is_terminal:
            return pod_lifecycle.preempt(pod.object, context, preempted_at, now)
        return pod_lifecycle.step(pod.object, context, now)

    def _preempt(self, pod: PodView) -> None:
        """Stop a pod so that a critical pod fits on its node."""
        if self._details:
            self._recorder.record_on(pod.node, pod.object, "Warning", PREEMPTING, PREEMPTED_MESSAGE)
        self._loop.add(pod.key)

    async def _sync_by_stages(self, key: Key, pod: PodView, _: ReadOnlyTree) -> timedelta | None:
        return await self._stages.run(key, pod.object)


def _not_simulated(creators: Mapping[AnyResource, str]) -> EmitEvent:
    reason = next(iter(creators.values()))
    message = (
        f"The pod refers to objects that do not exist. It starts, because {reason} a program that is not "
        "simulated, and that may have created them"
    )
    return EmitEvent("Warning", NOT_SIMULATED, message)


def _images(node: ReadOnlyTree) -> Any:
    return (node.get("status") or {}).get("images")


def _is_active(node: ReadOnlyTree | None) -> bool:
    return node is not None and has_active_kubelet(node)


def _node_name(pod: ReadOnlyTree) -> str:
    return pod["spec"].get("nodeName") or ""


def _has_address(pod: PodView) -> bool:
    """Return whether the pod needs no address from the node's podCIDR."""
    return bool((pod.object.get("status") or {}).get("podIP") or pod.object["spec"].get("hostNetwork"))
