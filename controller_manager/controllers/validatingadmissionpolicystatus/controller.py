"""The ValidatingAdmissionPolicy status controller: it writes type errors of expressions into the status of policies."""

from datetime import timedelta
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.kinds import VALIDATING_ADMISSION_POLICIES
from mockube.client.queue.reconcile_loop import ReconcileLoop
from mockube.client.resources import Key
from mockube.component_base.loop import yield_to_loop
from mockube.controller_manager.control.runnable import Context, Runnable

from .schemas import SchemaResolver, kinds_of
from .type_checking import TypeChecks, kinds_to_check, param_kind

_MANAGER: Final = "validatingadmissionpolicy-status"


class PolicyStatusController:
    def __init__(self, context: Context) -> None:
        self._client = context.client
        self._clock = context.clock
        workers = context.options.controllers.concurrent_validating_admission_policy_status_syncs
        self._loop = ReconcileLoop(
            _MANAGER, self._reconcile, workers=workers, clock=context.clock, metrics=context.metrics
        )
        self._policies = context.informers.of(VALIDATING_ADMISSION_POLICIES)
        self._policies.add_handler(self._on_change)

    async def run(self) -> None:
        await self._loop.run()

    def _on_change(self, change: Change) -> None:
        if change.new is not None and _is_unobserved(change.new):
            self._loop.add(Key("", meta.name(change.new)))

    async def _reconcile(self, key: Key) -> timedelta | None:
        policy = self._policies.lister.get("", key.name)
        if policy is None or not _is_unobserved(policy):
            return None
        warnings = await self._warnings(policy)
        checks = {"expressionWarnings": warnings} if warnings else {}
        body = {
            "apiVersion": VALIDATING_ADMISSION_POLICIES.api_version,
            "kind": VALIDATING_ADMISSION_POLICIES.kind,
            "metadata": {"name": key.name},
            "status": {"observedGeneration": meta.generation(policy), "typeChecking": checks},
        }
        await self._client.patch(
            VALIDATING_ADMISSION_POLICIES,
            key,
            body,
            kind="apply",
            subresource="status",
            field_manager=_MANAGER,
            force=True,
        )
        return None

    async def _warnings(self, policy: ReadOnlyTree) -> list[dict[str, str]]:
        """Return the warnings about a policy. Kinds are checked one after another, because a check takes a while."""
        if not (policy["spec"].get("matchConstraints") or {}).get("resourceRules"):
            return []
        kinds = kinds_to_check(policy, await kinds_of(self._client))
        if not kinds:
            return []
        schemas = SchemaResolver(self._client)
        checks = TypeChecks(policy, self._clock.now())
        params = param_kind(policy)
        if params is not None:
            checks.add_params(params, await schemas.of(params))
        for kind in kinds:
            schema = await schemas.of(kind)
            if schema is not None:
                checks.check(kind, schema)
                await yield_to_loop()
        return checks.warnings()


def _is_unobserved(policy: ReadOnlyTree) -> bool:
    return bool(meta.generation(policy) > (policy.get("status") or {}).get("observedGeneration", 0))


VALIDATING_ADMISSION_POLICY_STATUS: Final = Runnable(
    name="validatingadmissionpolicy-status-controller",
    service_account="validatingadmissionpolicy-status-controller",
    build=PolicyStatusController,
)
