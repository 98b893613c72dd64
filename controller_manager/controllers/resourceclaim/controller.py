"""The ResourceClaim controller: one queue has the keys of pods and of claims, as in upstream."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.resource_names import is_extended_resource_claim
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.component import Runner
from mockube.client.component_helpers import device_claims
from mockube.client.kinds import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager import metric_families as families
from mockube.controller_manager.control.actions import Create, Patch, Plan, PlanResult, Update
from mockube.controller_manager.control.controller import Controller, OutcomeMetrics, Watch
from mockube.controller_manager.control.runnable import Context, Runnable, WaitForKinds
from mockube.controller_manager.control.runner import ControllerRunner

from .claims import reconcile_claim
from .pods import BY_OWNER, needs_work, reconcile_pod

NAME: Final = "resourceclaim-controller"
ACCOUNT: Final = "resource-claim-controller"
_POD_PREFIX, _CLAIM_PREFIX = "pod:", "claim:"
_BY_TEMPLATE: Final = "podResourceClaimTemplate"
_MAX_DELETED_PODS: Final = 500
"""The uids of pods that are known to be deleted, as upstream's maxUIDCacheEntries (pkg/controller/resourceclaim/controller.go)."""
_BOOLEAN: Final = {False: "false", True: "true"}
"""The texts of a label."""
_SHARES_METRICS: Final = "1.37"
"""The first minor release whose controller has metrics of the same names as the scheduler."""


def pod_key(pod: Key) -> Key:
    return Key(pod.namespace, _POD_PREFIX + pod.name)


def claim_key(namespace: str, name: str) -> Key:
    return Key(namespace, _CLAIM_PREFIX + name)


class DeletedPods:
    """The uids of the pods that were deleted last."""

    def __init__(self) -> None:
        self.uids: OrderedDict[str, None] = OrderedDict()

    def add(self, uid: str) -> None:
        self.uids[uid] = None
        if len(self.uids) > _MAX_DELETED_PODS:
            self.uids.popitem(last=False)


def reconcile(deleted_pods: DeletedPods, caches: Caches, key: Key, _: datetime) -> Plan:
    if key.name.startswith(_POD_PREFIX):
        return reconcile_pod(caches, Key(key.namespace, key.name.removeprefix(_POD_PREFIX)))
    return reconcile_claim(
        deleted_pods.uids, caches, Key(key.namespace, key.name.removeprefix(_CLAIM_PREFIX))
    )


# --- the keys that a change affects


def _keys_of_pod(deleted_pods: DeletedPods, caches: Caches, change: Change) -> Iterable[Key]:
    pod: PodView = change.last_known
    extended = (pod.object.get("status") or {}).get("extendedResourceClaimStatus")
    if not device_claims.pod_claims(pod) and not extended:
        return
    if change.new is None:
        deleted_pods.add(pod.uid)
    if change.new is None or device_claims.is_done(pod):
        names = [*device_claims.claim_names(pod), *([extended["resourceClaimName"]] if extended else [])]
        yield from (claim_key(pod.key.namespace, name) for name in names)
    if change.new is not None and not pod.deleting and needs_work(caches, pod):
        yield pod_key(pod.key)


def _keys_of_claim(caches: Caches, change: Change) -> Iterable[Key]:
    claim = change.last_known
    if change.new is not None:
        yield claim_key(*Key.of(claim))
    yield from _waiting_pod_keys(caches, device_claims.BY_RESOURCE_CLAIM, claim)


def _keys_of_template(caches: Caches, change: Change) -> Iterable[Key]:
    return () if change.new is None else _waiting_pod_keys(caches, _BY_TEMPLATE, change.new)


def _waiting_pod_keys(caches: Caches, index: str, obj: ReadOnlyTree) -> Iterator[Key]:
    for pod in caches.of(PODS).by_index(index, str(Key.of(obj))):
        if not pod.deleting and needs_work(caches, pod):
            yield pod_key(pod.key)


def _templates_of(pod: PodView) -> Iterator[str]:
    names = [pod_claim.get("resourceClaimTemplateName") for pod_claim in device_claims.pod_claims(pod)]
    return (f"{pod.key.namespace}/{name}" for name in dict.fromkeys(names) if name)


def _owners_of(claim: ReadOnlyTree) -> Iterator[str]:
    owner = device_claims.owning_pod(claim)
    if owner is not None:
        yield owner["uid"]


# --- metrics


class ResourceClaimMetrics(OutcomeMetrics):
    """The names and labels are upstream's in the minor release of the gates."""

    def __init__(
        self, list_claims: Callable[[], Iterable[ReadOnlyTree]], gates: FeatureGates, metrics: MetricsRegistry
    ) -> None:
        self._list = list_claims
        self._is_older = gates.is_before(_SHARES_METRICS)
        creates = families.CLAIM_CREATES_UNTIL_1_36 if self._is_older else families.CLAIM_CREATES
        self._creates = metrics.numbers(creates)
        self._claims = metrics.numbers(families.CLAIMS_UNTIL_1_36 if self._is_older else families.CLAIMS)

    def observe(self, primary: Any, outcome: PlanResult, seconds: float, now: datetime) -> None:  # noqa: ARG002
        created = outcome.of(Create)
        for write in created:
            self._creates.add(1, "success", *self._labels(write.response or {}))
        if outcome.error is not None and not outcome.of(Patch) and not outcome.of(Update):
            self._creates.add(1, "failure", *self._labels({}))

    def _labels(self, claim: ReadOnlyTree) -> tuple[str, ...]:
        admin_access = _BOOLEAN[device_claims.has_admin_access(claim)]
        # Claims are created for pods only.
        return (admin_access,) if self._is_older else (admin_access, "", "Pod")

    def update(self) -> None:
        counts = Counter(
            (
                _BOOLEAN[device_claims.allocation(claim) is not None],
                _BOOLEAN[device_claims.has_admin_access(claim)],
                _source_label(claim),
            )
            for claim in self._list()
        )
        self._claims.replace(counts.items())


def _source_label(claim: ReadOnlyTree) -> str:
    if is_extended_resource_claim(claim):
        return "extended_resource"
    return "resource_claim_template" if meta.annotations(claim).get(device_claims.POD_CLAIM_NAME) else ""


def resource_claims(
    list_claims: Callable[[], Iterable[ReadOnlyTree]] = tuple,
    workers: int = 50,
    gates: FeatureGates | None = None,
) -> Controller:
    deleted_pods = DeletedPods()
    return Controller(
        name=NAME,
        queue="resource_claim",
        service_account=ACCOUNT,
        event_component="resource_claim",
        watches=(
            Watch(resource=PODS, keys=partial(_keys_of_pod, deleted_pods)),
            Watch(resource=RESOURCE_CLAIMS, keys=_keys_of_claim),
            Watch(resource=RESOURCE_CLAIM_TEMPLATES, keys=_keys_of_template),
        ),
        indexes={
            PODS: {device_claims.BY_RESOURCE_CLAIM: device_claims.claims_of_pod, _BY_TEMPLATE: _templates_of},
            RESOURCE_CLAIMS: {BY_OWNER: _owners_of},
        },
        reconcile=partial(reconcile, deleted_pods),
        outcome_metrics=partial(ResourceClaimMetrics, list_claims, gates or FeatureGates()),
        workers=workers,
    )


def _build(context: Context) -> Runner:
    def build() -> Runner:
        lister = context.informers.of(RESOURCE_CLAIMS).lister
        workers = context.options.controllers.concurrent_resourceclaim_syncs
        gates = context.informers.caches.gates
        return ControllerRunner(resource_claims(lister.all, workers, gates), context)

    return WaitForKinds((RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES), build, context)


RESOURCE_CLAIM: Final = Runnable(name=NAME, service_account=ACCOUNT, build=_build)
