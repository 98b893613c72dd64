"""The plugins that call webhooks: mutating webhooks one after another, validating ones concurrently."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson

from mockube.apimachinery import gotext, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.patch.errors import PatchError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission import versions
from mockube.apiserver.admission.plugin import InvocationRounds, Plugin
from mockube.apiserver.patch import json_patch
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation
from mockube.apiserver.registry.write import with_conversions
from mockube.apiserver.schema.decode import DecodeError

from .dispatch import ConfiguredWebhooks, FailurePolicy, WebhookDependencies, call_webhook, should_call_hook
from .hooks import MUTATING, VALIDATING, WebhookInvocation
from .review import WebhookResponse

_MUTATION: Final = "mutation.webhook.admission.k8s.io/"
_PATCH: Final = "patch.webhook.admission.k8s.io/"
_VALIDATION: Final = "validating.webhook.admission.k8s.io/"
ADMIT, VALIDATE = "admit", "validating"


class MutatingAdmissionWebhook(Plugin):
    operations = frozenset(Operation)
    needs: GroupResource | None = MUTATING

    def __init__(self, environment: WebhookDependencies) -> None:
        self._environment = environment
        self._webhooks = ConfiguredWebhooks(MUTATING, environment.equivalents)

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        invocations = self._webhooks.invocations(registry, attributes)
        if not invocations:
            return
        rounds = attributes.reinvocation.state.setdefault("webhooks", InvocationRounds())
        if attributes.reinvocation.is_reinvocation and rounds.output != attributes.object:
            rounds.require_reinvocation()
        try:
            for invocation in invocations:
                if await should_call_hook(self._environment, registry, invocation, attributes, mutating=True):
                    await self._call_webhook(registry, invocation, attributes, rounds)
        finally:
            rounds.output = attributes.object

    async def _call_webhook(
        self,
        registry: Registry,
        invocation: WebhookInvocation,
        attributes: AdmissionAttributes,
        rounds: InvocationRounds,
    ) -> None:
        hook, number = invocation.hook, int(attributes.reinvocation.is_reinvocation)
        if number and hook.uid not in rounds.keys_to_reinvoke:
            return
        annotation_key, changed = f"round_{number}_index_{hook.index}", False
        policy = FailurePolicy(self._environment, registry, hook, attributes, ADMIT)
        try:
            with policy:
                answer = await call_webhook(
                    self._environment, registry, invocation, attributes, mutating=True
                )
                changed = await self._apply(registry, invocation, attributes, answer, annotation_key)
        finally:
            annotation = {"configuration": hook.configuration, "webhook": hook.name, "mutated": changed}
            attributes.context.report.annotations[_MUTATION + annotation_key] = _annotation_text(annotation)
        if policy.failed_open:
            attributes.context.report.annotations[f"failed-open.{_MUTATION}{annotation_key}"] = hook.name
        # In upstream's order (webhook/mutating/dispatcher.go): a hook is not called again for its own change.
        if changed:
            rounds.require_reinvocation()
            attributes.reinvocation.is_wanted = True
        if hook.reinvocable:
            rounds.add_invoked(hook.uid)

    async def _apply(
        self,
        registry: Registry,
        invocation: WebhookInvocation,
        attributes: AdmissionAttributes,
        answer: WebhookResponse,
        annotation_key: str,
    ) -> bool:
        """Apply a patch, and return whether it changed the object."""
        if not answer.patch:
            return False
        hook, row = invocation.hook, invocation.row
        await versions.prepare_version(registry, attributes, row)
        before = versions.without_system_fields(
            attributes, versions.to_version(registry, attributes, row, attributes.object)
        )
        if before is None:
            problem = "attempted to modify the object, which is not supported for this operation"
            raise status.internal_error(f"admission webhook {gotext.quote(hook.name)} {problem}")
        size = attributes.context.work.size + len(orjson.dumps(answer.patch))
        after = await registry.worker.run(size, _apply_patch, before, answer.patch)
        annotation = {
            "configuration": hook.configuration,
            "webhook": hook.name,
            "patch": answer.patch,
            "patchType": "JSONPatch",
        }
        attributes.context.report.annotations[_PATCH + annotation_key] = _annotation_text(annotation)
        try:
            convert = partial(
                registry.worker.run, size, versions.to_admitted_version, registry, attributes, row, after
            )
            attributes.object = await with_conversions(attributes.context, convert)
        except (DecodeError, KeyError, TypeError) as error:
            raise status.internal_error(str(error)) from error
        return after != before


def _annotation_text(annotation: Mapping[str, Any]) -> str:
    """Return the text of an annotation of the audit event."""
    return gotext.escape_html(orjson.dumps(annotation)).decode()


def _apply_patch(tree: Tree, patch: Any) -> Tree:
    try:
        patched: Tree = json_patch.apply(orjson.loads(orjson.dumps(tree)), patch)
    except PatchError as error:
        raise status.internal_error(str(error)) from error
    if not isinstance(patched, dict):
        raise status.internal_error("the patch leaves no object")
    return patched


class ValidatingAdmissionWebhook(Plugin):
    operations = frozenset(Operation)
    needs: GroupResource | None = VALIDATING

    def __init__(self, environment: WebhookDependencies) -> None:
        self._environment = environment
        self._webhooks = ConfiguredWebhooks(VALIDATING, environment.equivalents)

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        invocations = self._webhooks.invocations(registry, attributes)
        if not invocations:
            return
        relevant = [
            invocation
            for invocation in invocations
            if await should_call_hook(self._environment, registry, invocation, attributes, mutating=False)
        ]
        if len(relevant) == 1:
            await self._call_webhook(registry, relevant[0], attributes, 0)
        elif relevant:
            await self._call_all(registry, relevant, attributes)

    async def _call_all(
        self, registry: Registry, relevant: Sequence[WebhookInvocation], attributes: AdmissionAttributes
    ) -> None:
        """Call all concurrently; raise the first refusal in their order."""
        reviews = (
            self._call_webhook(registry, invocation, attributes, index)
            for index, invocation in enumerate(relevant)
        )
        for outcome in await asyncio.gather(*reviews, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    async def _call_webhook(
        self, registry: Registry, invocation: WebhookInvocation, attributes: AdmissionAttributes, index: int
    ) -> None:
        policy = FailurePolicy(self._environment, registry, invocation.hook, attributes, VALIDATE)
        with policy:
            await call_webhook(self._environment, registry, invocation, attributes, mutating=False)
        if policy.failed_open:
            name = f"failed-open.{_VALIDATION}round_0_index_{index}"
            attributes.context.report.annotations[name] = invocation.hook.name
