"""The HorizontalPodAutoscaler controller: it reconciles each autoscaler once in every sync period."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from mockube.apimachinery import labels, meta
from mockube.apimachinery.groups import GroupKind, GroupVersion
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.kinds import HORIZONTAL_POD_AUTOSCALERS, PODS
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key, Resource
from mockube.client.wire import NoResponse
from mockube.controller_manager.control.runnable import Context, Runnable

from . import monitor, scaling, zero
from .behavior import ScalingHistory, with_initial_recommendation, with_scaling
from .metrics_api import MetricsApi
from .monitor import Monitor
from .proposals import FailedMetricError, Proposal, TargetMetrics, propose
from .replicas import ScalingContext
from .scaling import MetricsFailedError, ScalingDecision
from .selectors import Selectors
from .status import ABLE, ACTIVE, GENERATION, AutoscalerStatus
from .targets import RestMapper, ScaleClient, ScaleError, UnknownKindError

LOG: Final = logging.getLogger(__name__)

NAME: Final = "horizontal-pod-autoscaler"
_RECONCILES_AT_ONCE: Final = "1.37"
"""The first minor release in which an autoscaler that is new or has another spec does not wait for its period."""
_STOPS_AFTER_DELETION: Final = "1.37"
"""The first minor release in which an autoscaler that is deleted during its reconciliation does not scale any more."""
_NAMES_TWO_AUTOSCALERS: Final = "1.37"
"""The first minor release whose message about several autoscalers of a pod contains two of them as an example."""
_MISSING_SELECTOR: Final = "the HPA target's scale is missing a selector"


class ReconcileError(Exception):
    """A reconciliation failed, and the status has the reason; the message is upstream's."""

    def __init__(self, message: str, *, is_spec: bool = False) -> None:
        super().__init__(message)
        self.label = monitor.SPEC if is_spec else monitor.INTERNAL


class HorizontalPodAutoscalerController:
    def __init__(self, context: Context) -> None:
        self._client, self._clock = context.client, context.clock
        self._options = context.options.controllers
        self._gates = context.informers.caches.gates
        self._period = timedelta(seconds=self._options.horizontal_pod_autoscaler_sync_period)
        self._recorder = context.recorder.of(NAME)
        self._rest_mapper = RestMapper(context.client, context.clock)
        self._scale_client = ScaleClient(context.client, context.clock)
        self._api = MetricsApi(context.client, self._rest_mapper)
        self._selectors = Selectors()
        self._histories: dict[Key, ScalingHistory] = {}
        self._registry = context.metrics.registry
        self._monitor = Monitor(lambda: len(self._selectors), self._registry)
        self._autoscalers = context.informers.of(HORIZONTAL_POD_AUTOSCALERS)
        self._pods = context.informers.of(PODS)
        self._loop = ReconcileLoop(
            "horizontalpodautoscaler",
            self._reconcile,
            workers=self._options.concurrent_horizontal_pod_autoscaler_syncs,
            clock=context.clock,
            metrics=context.metrics,
        )
        self._autoscalers.add_handler(self._on_change)

    async def run(self) -> None:
        for informer in (self._autoscalers, self._pods):
            await informer.wait_synced()
        stop_collecting = self._registry.on_collect(self._monitor.update)
        try:
            await self._loop.run()
        finally:
            stop_collecting()

    def _on_change(self, change: Change) -> None:
        """Queue the autoscaler at once if it is new, deleted or has another spec, and otherwise for its next period."""
        key = Key.of(change.last_known)
        if change.new is None:
            self._selectors.remove(key)
            self._monitor.desired.pop(key, None)
            self._loop.add_after(key, timedelta())
            return
        if key not in self._selectors:
            self._selectors.put(key)
        self._loop.add_after(key, timedelta() if self._is_urgent(change) else self._period)

    def _is_urgent(self, change: Change) -> bool:
        if self._gates.is_before(_RECONCILES_AT_ONCE):
            return False
        if change.old is None or change.new is None:
            return True
        has_generations = self._gates.is_on(GENERATION)
        return has_generations and meta.generation(change.old) != meta.generation(change.new)

    async def _reconcile(self, key: Key) -> timedelta | None:
        autoscaler = self._autoscalers.lister.get(*key)
        if autoscaler is None:
            self._histories.pop(key, None)
            return None
        started_at, action, error = self._clock.monotonic(), monitor.NONE, monitor.NONE
        try:
            action = await self._scale(key, autoscaler)
        except ReconcileError as problem:
            LOG.info("%s: %s", key, problem)
            error = problem.label
        except NoResponse as problem:
            LOG.warning("%s: %s", key, problem)
            error = monitor.INTERNAL
        self._monitor.reconciliations.observe(self._clock.monotonic() - started_at, action, error)
        return self._period

    async def _scale(self, key: Key, autoscaler: ReadOnlyTree) -> str:
        """Scale the target of an autoscaler, and write the status; return the action for the metrics."""
        status = AutoscalerStatus(autoscaler, self._gates, self._clock.now())
        resource, scale = await self._scale_of(key, autoscaler, status)
        status.set_able("SucceededGetScale", "the HPA controller was able to get the target's current scale")
        current = _replicas(scale)
        history = with_initial_recommendation(
            self._histories.get(key, ScalingHistory()), current, self._clock.now()
        )
        decision = scaling.decide_by_range(autoscaler, current, history, status, self._gates)
        if decision is None:
            decision = await self._decide_by_metrics(key, autoscaler, scale, history, status)
        self._histories[key] = decision.history
        rescales = decision.desired != current
        if rescales:
            await self._rescale(autoscaler, resource, scale, decision, status)
            self._remember_scaling(key, autoscaler, current, decision.desired)
        status.set_replicas(current, decision.metrics, desired=decision.desired, rescaled=rescales)
        self._monitor.desired[key] = decision.desired
        await self._write(autoscaler, status)
        if decision.problem:
            raise ReconcileError(decision.problem)
        return monitor.action(current, decision.desired)

    # --- the target

    async def _scale_of(
        self, key: Key, autoscaler: ReadOnlyTree, status: AutoscalerStatus
    ) -> tuple[Resource[Any], ReadOnlyTree]:
        reference = autoscaler["spec"]["scaleTargetRef"]
        fail = partial(self._fail_to_get_scale, autoscaler, status)
        try:
            version = GroupVersion.parse(reference.get("apiVersion") or "")
        except ValueError as error:
            await fail(error)
            problem = f"invalid API version in scale target reference: {error}"
            raise ReconcileError(problem, is_spec=True) from error
        kind = GroupKind(version.group, reference["kind"])
        try:
            resource = await self._rest_mapper.find(kind)
        except (UnknownKindError, ApiError, NoResponse) as error:
            await fail(error)
            problem = f"unable to determine resource for scale target reference: {error}"
            raise ReconcileError(problem) from error
        try:
            scale = await self._scale_client.scale(resource, Key(key.namespace, reference["name"]))
        except (ApiError, NoResponse, ScaleError) as error:
            await fail(error)
            problem = f"failed to query scale subresource for {_reference(autoscaler)}: {error}"
            raise ReconcileError(problem) from error
        return resource, scale

    async def _fail_to_get_scale(
        self, autoscaler: ReadOnlyTree, status: AutoscalerStatus, error: Exception
    ) -> None:
        self._recorder.record(autoscaler, "Warning", "FailedGetScale", str(error))
        status.unable_to_get_scale(error)
        await self._try_to_write(autoscaler, status)

    async def _rescale(
        self,
        autoscaler: ReadOnlyTree,
        resource: Resource[Any],
        scale: ReadOnlyTree,
        decision: ScalingDecision,
        status: AutoscalerStatus,
    ) -> None:
        size = f"New size: {decision.desired}; reason: {decision.reason}"
        try:
            await self._scale_client.rescale(resource, scale, decision.desired)
        except (ApiError, NoResponse) as error:
            self._recorder.record(autoscaler, "Warning", "FailedRescale", f"{size}; error: {error}")
            message = f"the HPA controller was unable to update the target scale: {error}"
            status.record(ABLE, "False", "FailedUpdateScale", message)
            status.set_replicas(_replicas(scale), decision.metrics)
            await self._try_to_write(autoscaler, status)
            raise ReconcileError(f"failed to rescale {_reference(autoscaler)}: {error}") from error
        message = f"the HPA controller was able to update the target scale to {decision.desired}"
        status.set_able("SucceededRescale", message)
        self._recorder.record(autoscaler, "Normal", "SuccessfulRescale", size)
        current = _replicas(scale)
        zero.record_rescale(autoscaler, current, decision.desired, status, self._gates)

    def _remember_scaling(self, key: Key, autoscaler: ReadOnlyTree, old: int, new: int) -> None:
        behavior = autoscaler["spec"].get("behavior")
        self._histories[key] = with_scaling(self._histories[key], behavior, old, new, self._clock.now())

    # --- metrics

    async def _decide_by_metrics(
        self,
        key: Key,
        autoscaler: ReadOnlyTree,
        scale: ReadOnlyTree,
        history: ScalingHistory,
        status: AutoscalerStatus,
    ) -> ScalingDecision:
        self._histories[key] = history
        current = _replicas(scale)
        try:
            source, context = self._scaling_context(key, autoscaler, scale, status)
            propose_metric = partial(self._propose, autoscaler, source, context)
            recommendation = await scaling.recommend(
                autoscaler["spec"].get("metrics") or (), current, propose_metric, status
            )
        except MetricsFailedError as error:
            status.set_replicas(current, error.statuses)
            await self._try_to_write(autoscaler, status)
            self._recorder.record(autoscaler, "Warning", "FailedComputeMetricsReplicas", str(error))
            problem = "failed to compute desired number of replicas based on listed metrics for"
            raise ReconcileError(f"{problem} {_reference(autoscaler)}: {error}") from error
        limits = scaling.limits_of(autoscaler, current, self._options, self._clock.now())
        return scaling.decide(autoscaler, recommendation, limits, history, status)

    def _scaling_context(
        self, key: Key, autoscaler: ReadOnlyTree, scale: ReadOnlyTree, status: AutoscalerStatus
    ) -> tuple[TargetMetrics, ScalingContext]:
        scale_status, options = scale.get("status") or {}, self._options
        text = scale_status.get("selector") or ""
        inactive = partial(self._inactive, autoscaler, status)
        if not text:
            raise inactive("SelectorRequired", "selector is required", "InvalidSelector", _MISSING_SELECTOR)
        selector = labels.parse(text)
        if key in self._selectors:
            self._selectors.put(key, selector)
        elif not self._gates.is_before(_STOPS_AFTER_DELETION):
            raise MetricsFailedError(f"HPA {key} was deleted during reconciliation")
        pods = [pod for pod in self._pods.lister.in_namespace(key.namespace) if selector.matches(pod.labels)]
        selecting_keys = sorted(self._selectors.selecting(key.namespace, pods))
        if len(selecting_keys) > 1:
            raise inactive("AmbiguousSelector", self._ambiguity(text, selecting_keys))
        context = ScalingContext(
            spec_replicas=_replicas(scale),
            status_replicas=scale_status.get("replicas") or 0,
            pods=pods,
            tolerances=scaling.tolerances(autoscaler, options.horizontal_pod_autoscaler_tolerance),
            cpu_initialization_period=_seconds(options.horizontal_pod_autoscaler_cpu_initialization_period),
            initial_readiness_delay=_seconds(options.horizontal_pod_autoscaler_initial_readiness_delay),
            now=self._clock.now(),
        )
        return TargetMetrics(self._api, key.namespace, str(selector), self._gates), context

    def _ambiguity(self, selector: str, keys: Sequence[Key]) -> str:
        if self._gates.is_before(_NAMES_TWO_AUTOSCALERS):
            names = " ".join(map(str, keys))
            return f"pods by selector {selector} are controlled by multiple HPAs: [{names}]"
        count = 2 if self._gates.is_on("HPAOptimizedSelectorStore") else len(keys)
        names = " ".join(map(str, keys[:count]))
        return f"pods by selector {selector} are controlled by more than one HPA (e.g. [{names}])"

    def _inactive(
        self,
        autoscaler: ReadOnlyTree,
        status: AutoscalerStatus,
        event: str,
        problem: str,
        reason: str = "",
        message: str = "",
    ) -> MetricsFailedError:
        self._recorder.record(autoscaler, "Warning", event, problem)
        status.record(ACTIVE, "False", reason or event, message or problem)
        return MetricsFailedError(problem)

    async def _propose(
        self, autoscaler: ReadOnlyTree, source: TargetMetrics, context: ScalingContext, spec: ReadOnlyTree
    ) -> Proposal | FailedMetricError:
        started_at = self._clock.monotonic()
        old = (autoscaler.get("status") or {}).get("currentReplicas") or 0
        action, label = monitor.NONE, monitor.NONE
        try:
            proposal = await propose(spec, source, context)
        except FailedMetricError as error:
            self._recorder.record(autoscaler, "Warning", error.reason, error.problem)
            label = monitor.SPEC if error.is_spec else monitor.INTERNAL
            return error
        else:
            action = monitor.action(old, proposal.replicas)
            return proposal
        finally:
            seconds = self._clock.monotonic() - started_at
            self._monitor.computations.observe(seconds, action, label, spec["type"])

    # --- the status

    async def _try_to_write(self, autoscaler: ReadOnlyTree, status: AutoscalerStatus) -> None:
        """Write the status after another failure; an error of the write is only logged."""
        try:
            await self._write(autoscaler, status)
        except (ReconcileError, NoResponse) as error:
            LOG.warning("%s", error)

    async def _write(self, autoscaler: ReadOnlyTree, status: AutoscalerStatus) -> None:
        updated = status.updated_object
        if updated is None:
            return
        try:
            await self._client.update(HORIZONTAL_POD_AUTOSCALERS, updated, subresource="status")
        except ApiError as error:
            self._recorder.record(autoscaler, "Warning", "FailedUpdateStatus", str(error))
            problem = f"failed to update status for {meta.name(autoscaler)}: {error}"
            raise ReconcileError(problem) from error


def _replicas(scale: ReadOnlyTree) -> int:
    """Return the replicas of a scale; a server omits 0."""
    return (scale.get("spec") or {}).get("replicas") or 0


def _reference(autoscaler: ReadOnlyTree) -> str:
    reference = autoscaler["spec"]["scaleTargetRef"]
    return f"{reference['kind']}/{meta.namespace(autoscaler)}/{reference['name']}"


def _seconds(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


HORIZONTAL_POD_AUTOSCALER: Final = Runnable(
    name="horizontal-pod-autoscaler-controller", service_account=NAME, build=HorizontalPodAutoscalerController
)
