"""The subresource /eviction, which deletes a pod if its PodDisruptionBudget allows it."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, labels, meta, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError, Cause, TooManyRequests
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.wellknown import CAUSE_DISRUPTION_BUDGET, CONDITION_DISRUPTION_TARGET
from mockube.apiserver.kinds.api_resource import STATUS
from mockube.apiserver.registry import metadata
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.delete import delete_with_options
from mockube.apiserver.registry.delete_options import KIND as DELETE_OPTIONS
from mockube.apiserver.registry.delete_options import DeleteOptions, check_preconditions, unchecked_options
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import (
    AdmissionAttributes,
    ObjectResult,
    Operation,
    RequestContext,
    WriteOptions,
    refuse_options,
    write_options,
)
from mockube.apiserver.registry.update import guaranteed_update
from mockube.apiserver.registry.write import Write

BUDGETS = GroupResource("policy", "poddisruptionbudgets")
BUDGET = GroupResource("policy", "poddisruptionbudget")
POD = GroupResource("", "Pod")
"""The names in errors."""

SERVER = "kube-apiserver"
RETRIES = 20
MAX_DISRUPTED_PODS = 2000
"""The maximum of disrupted pods of a budget that its controller has not yet observed."""
VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
MULTIPLE_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)

_EVICTED = {
    "type": CONDITION_DISRUPTION_TARGET,
    "status": "True",
    "lastProbeTime": None,
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
_EXHAUSTED = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}


async def create(registry: Registry, context: RequestContext) -> ObjectResult:
    written = write_options(context, "CreateOptions")
    eviction, _ = await registry.begin(context, read_object, registry, context, written)
    metadata.match_namespace(eviction, context)
    is_dry = written.dry_run or bool((eviction.get("deleteOptions") or {}).get("dryRun"))
    attributes = AdmissionAttributes(
        operation=Operation.CREATE, context=context, name=context.name, object=eviction, dry_run=is_dry
    )
    await registry.admission.mutate(registry, attributes)
    assert attributes.object is not None
    if meta.name(attributes.object) != context.name:
        raise status.BadRequest("name in URL does not match name in Eviction object")
    options = _deletion_of(attributes.object.get("deleteOptions") or {}, written)
    await registry.admission.validate(registry, attributes)
    await _evict(registry, context, options)
    return ObjectResult(code=201, tree=status.success(code=201))


def _deletion_of(tree: Tree, written: WriteOptions) -> DeleteOptions:
    """Return the options of the deletion, which is a dry run if the eviction is one."""
    dry_run = tree.get("dryRun") or ()
    if written.dry_run and dry_run not in ((), ["All"]):
        content_options = " ".join(dry_run)
        raise ApiError(f"Non-matching dry-run options in request and content: [All] and [{content_options}]")
    options = unchecked_options(tree)
    return replace(options, dry_run=options.dry_run or written.dry_run)


async def _evict(registry: Registry, context: RequestContext, options: DeleteOptions) -> None:
    """Evict the pod; retry if the pod changes meanwhile and the client set no resourceVersion."""
    for attempt in range(1, RETRIES + 1):
        pod = (await registry.get(context.resource, context.namespace, context.name)).tree()
        if not _needs_no_budget(pod):
            await _evict_within_budget(registry, context, options, pod)
            return
        try:
            await _delete(
                registry, context, _at_checked_version(options, pod) if _may_become_ready(pod) else options
            )
        except status.Conflict:
            if options.version is not None or attempt == RETRIES:
                raise
        else:
            return


def _needs_no_budget(pod: Tree) -> bool:
    """Return whether a pod is evicted without a budget: it is pending, terminal or being deleted."""
    return pod["status"].get("phase") in ("Pending", "Succeeded", "Failed") or meta.is_deleting(pod)


def _may_become_ready(pod: Tree) -> bool:
    return pod["status"].get("phase") == "Pending" and not meta.is_deleting(pod)


def _at_checked_version(options: DeleteOptions, pod: Tree) -> DeleteOptions:
    """Return options that delete the pod only at the version that was checked."""
    return replace(options, version=options.version or meta.resource_version(pod))


async def _evict_within_budget(
    registry: Registry, context: RequestContext, options: DeleteOptions, pod: Tree
) -> None:
    budget = await _budget_of(registry, pod)
    if budget is None:
        await _delete(registry, context, options)
    elif not _needs_disruption(pod, budget):
        try:
            await _delete(registry, context, _at_checked_version(options, pod))
        except status.Conflict as error:
            if options.version is not None:
                raise
            # The pod may have become ready, so that its budget applies.
            raise _still_processed(meta.name(budget)) from error
    else:
        await _use_disruption(registry, context, budget, dry_run=options.dry_run)
        await _delete(registry, context, options)


async def _budget_of(registry: Registry, pod: Tree) -> Tree | None:
    await registry.watch_cache.fresh()
    budgets = [stored.tree() for stored in registry.list_cached(BUDGETS, meta.namespace(pod))]
    matching_budgets = [budget for budget in budgets if _selects(budget, pod)]
    if len(matching_budgets) > 1:
        raise ApiError(MULTIPLE_BUDGETS)
    return matching_budgets[0] if matching_budgets else None


def _selects(budget: Tree, pod: Tree) -> bool:
    try:
        selector = labels.from_label_selector(budget.get("spec", {}).get("selector"))
    except labels.SelectorError:
        return False  # an invalid selector selects nothing
    return selector.matches(dict(meta.labels(pod)))


def _needs_disruption(pod: Tree, budget: Tree) -> bool:
    """Return whether the eviction needs a disruption; one of an unready pod does only if there are too few healthy pods."""
    if conditions.is_true(pod, "Ready"):
        return True
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return False
    healthy, desired = (_count(budget, field) for field in ("currentHealthy", "desiredHealthy"))
    return not healthy >= desired > 0


def _count(budget: Tree, field: str) -> int:
    count: int = budget.get("status", {}).get(field, 0)
    return count


async def _use_disruption(
    registry: Registry, context: RequestContext, budget: Tree, *, dry_run: bool
) -> None:
    """Use one allowed disruption of a budget; raise an error if it has none."""
    update = RequestContext(
        verb="update",
        resource=registry.rows[BUDGETS],
        subresource=STATUS,
        namespace=context.namespace,
        name=meta.name(budget),
        user=context.user,
        user_agent=SERVER,
        is_internal=True,
        part_of=context,
    )
    options = WriteOptions(dry_run=dry_run)

    def change(_: Write, old: Tree) -> Tree:
        new = _with_used_disruption(registry, old, context.name)
        return metadata.manage_change(registry, update, new, old, options)

    await guaranteed_update(Write(registry=registry, context=update, options=options, change=change))


def _with_used_disruption(registry: Registry, budget: Tree, pod_name: str) -> Tree:
    _check(budget, has_causes=not registry.is_before("1.37"))
    now, before = registry.clock.now(), budget["status"]
    disruptions_left = _count(budget, "disruptionsAllowed") - 1
    disrupted = before.get("disruptedPods", {}) | {pod_name: format_time(now)}
    updated_budget = budget | {
        "status": before | {"disruptionsAllowed": disruptions_left, "disruptedPods": disrupted}
    }
    if disruptions_left:
        return updated_budget
    observed = _count(budget, "observedGeneration")
    exhausted = _EXHAUSTED | ({"observedGeneration": observed} if observed else {})
    return conditions.with_condition(updated_budget, exhausted, now)


_NEGATIVE: Final = "pdb disruptions allowed is negative"
_TOO_MANY_PENDING: Final = "too many pending evictions not confirmed by PDB controller"


def _check(budget: Tree, *, has_causes: bool) -> None:
    """Refuse a disruption that the budget does not allow; `has_causes` is whether every refusal names its cause."""
    name, disruptions_left = meta.name(budget), _count(budget, "disruptionsAllowed")
    if _count(budget, "observedGeneration") < meta.generation(budget):
        raise _still_processed(name)
    if disruptions_left < 0:
        raise status.forbidden(BUDGET, name, _NEGATIVE, _causes(name, _NEGATIVE) if has_causes else ())
    if len(budget["status"].get("disruptedPods", {})) > MAX_DISRUPTED_PODS:
        problem = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise status.forbidden(BUDGET, name, problem, _causes(name, _TOO_MANY_PENDING) if has_causes else ())
    if disruptions_left == 0:
        raise _too_many(f"The disruption budget {name} {_reason_for_none(budget)}", 0)


def _causes(name: str, problem: str) -> Sequence[Cause]:
    message = f"The disruption budget {name} does not allow evicting pods currently: {problem}"
    return (Cause(reason=CAUSE_DISRUPTION_BUDGET, message=message),)


def _reason_for_none(budget: Tree) -> str:
    """Return why the budget allows no disruption; after a failed sync its counts are not reliable."""
    denied = "does not allow evicting pods currently"
    condition = conditions.get(budget, _EXHAUSTED["type"]) or {}
    message = condition.get("message") if condition.get("status") == "False" else ""
    reason = condition.get("reason")
    if message and reason == "SyncFailed":
        return f"{denied} because it failed sync: {message}"
    desired, healthy = _count(budget, "desiredHealthy"), _count(budget, "currentHealthy")
    if healthy <= desired:
        return f"needs {desired} healthy pods and has {healthy} currently"
    return f"{denied} ({reason}): {message}" if message else denied


def _still_processed(name: str) -> TooManyRequests:
    return _too_many(f"The disruption budget {name} is still being processed by the server.", 10)


def _too_many(message: str, retry_after: int) -> TooManyRequests:
    return status.too_many_requests(
        VIOLATION, retry_after, [Cause(reason=CAUSE_DISRUPTION_BUDGET, message=message)]
    )


async def _delete(registry: Registry, context: RequestContext, options: DeleteOptions) -> None:
    """Record the reason in the pod's conditions, and delete the pod."""
    of_pod: dict[str, Any] = {"namespace": context.namespace, "name": context.name, "user": context.user}
    of_pod |= {"is_internal": True, "part_of": context}
    if not options.dry_run:
        marking = RequestContext(verb="update", resource=context.resource, subresource=STATUS, **of_pod)

        def change(_: Write, old: Tree) -> Tree:
            check_preconditions(POD, context.name, options, old["metadata"])
            return conditions.with_condition(old, _EVICTED, registry.clock.now())

        answer = await guaranteed_update(Write(registry=registry, context=marking, change=change))
        marked = answer.object()
        if options.version is not None:
            options = replace(options, version=meta.resource_version(marked))
    refuse_options(DELETE_OPTIONS, options.problems)  # as upstream, after the budget has allowed the eviction
    await delete_with_options(
        registry, RequestContext(verb="delete", resource=context.resource, **of_pod), options
    )
