"""Ask one webhook about a write, and judge what came of it."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from mockube.apimachinery import chance as chances
from mockube.apimachinery import gotext, meta, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.plugin import forbidden
from mockube.apiserver.admission.webhooks import review
from mockube.apiserver.admission.webhooks.hooks import Equivalents, Hook, Hooks, Invocation, selects
from mockube.apiserver.admission.webhooks.review import Answer, CallFailed
from mockube.apiserver.admission.webhooks.services import Caller, endpoint
from mockube.apiserver.kinds.api_resource import SCALE, Resource
from mockube.apiserver.metrics.webhooks import CALLING, INTERNAL, NO_ERROR, WebhookMetrics
from mockube.apiserver.registry.attributes import Attributes, Operation
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.body import decode_as
from mockube.apiserver.registry.convert import from_stored, to_stored
from mockube.apiserver.registry.subresources import scale

LOG: Final = logging.getLogger(__name__)
NAMESPACES: Final = GroupResource("", "namespaces")
_SYSTEM_FIELDS: Final = ("uid", "creationTimestamp")
_HARMLESS: Final = ("None", "NoneOnDryRun")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What webhooks are called with."""

    caller: Caller
    equivalents: Equivalents
    services: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Where Services are that lead nowhere by themselves, by NAMESPACE/NAME."""
    metrics: WebhookMetrics = field(default_factory=WebhookMetrics)


class Registry:
    """The webhooks of one sort of configuration, read anew when one has changed."""

    def __init__(self, resource: GroupResource, equivalents: Equivalents) -> None:
        self._resource = resource
        self._equivalents = equivalents
        self._hooks = Hooks((), equivalents)

    def invocations(self, backend: Backend, attributes: Attributes) -> Sequence[Invocation]:
        """The webhooks that a write concerns, by rules and selectors."""
        configurations = backend.all_seen(self._resource)
        if configurations != self._hooks.configurations:
            self._hooks = Hooks(configurations, self._equivalents)
        if not configurations:
            return ()
        return self._hooks.concerned(attributes.operation, attributes.resource, attributes.subresource)


def is_concerned(backend: Backend, invocation: Invocation, attributes: Attributes) -> bool:
    if not selects(invocation.hook, attributes, lambda: _namespace_labels(backend, attributes)):
        return False
    if invocation.hook.conditions:
        raise forbidden(
            attributes, f"matchConditions of webhook {gotext.quote(invocation.hook.name)} are not built yet"
        )
    return True


def _namespace_labels(backend: Backend, attributes: Attributes) -> Mapping[str, str] | None:
    """None for what is in no namespace."""
    name = attributes.namespace
    if attributes.target[:2] == ("", "namespaces"):
        if attributes.object is not None and not attributes.subresource:
            return meta.labels(attributes.object)
        name = attributes.name
    if not name:
        return None
    stored = backend.seen(NAMESPACES, "", name)
    if stored is None:
        raise status.not_found(NAMESPACES, name)
    return stored.labels


def to_webhook_version(
    backend: Backend, attributes: Attributes, row: Resource, tree: Tree | None
) -> Tree | None:
    """The object as a row has it."""
    if tree is None:
        return None
    if _is_scale(attributes):
        return scale.scale_view(attributes.resource).show(tree)
    if (row is attributes.resource and _is_own(attributes, tree)) or _has_other_kind(attributes):
        return tree
    if tree["apiVersion"] == row.api_version and tree["kind"] == row.kind:
        return tree
    conversion = backend.conversion(attributes.resource)
    if conversion is not None and conversion.at_storage:
        tree = conversion.to_stored(tree)
    return from_stored(backend, row, tree)


def without_system_fields(attributes: Attributes, tree: Tree | None) -> Tree | None:
    """A new object as mutating webhooks see it: it has no uid and no time yet."""
    if tree is None or attributes.operation is not Operation.CREATE or attributes.subresource:
        return tree
    metadata = {name: value for name, value in tree["metadata"].items() if name not in _SYSTEM_FIELDS}
    return tree | {"metadata": metadata}


def _with_version(new: Tree | None, old: Tree | None) -> Tree | None:
    """What is to be stored in place of a version, once that was checked."""
    version = meta.resource_version(old or {})
    if new is None or not version or meta.resource_version(new):
        return new
    return new | {"metadata": new["metadata"] | {"resourceVersion": version}}


def _is_own(attributes: Attributes, tree: Tree) -> bool:
    return bool(tree["apiVersion"] == attributes.resource.api_version)


def _is_scale(attributes: Attributes) -> bool:
    """Whether the write is of a part of an object, which is admitted whole here."""
    subresource, written = attributes.call.subresource, attributes.object or attributes.old
    is_scale = subresource is not None and subresource.kind == SCALE.kind
    return is_scale and written is not None and bool(written["kind"] != SCALE.kind)


def _has_other_kind(attributes: Attributes) -> bool:
    subresource = attributes.call.subresource
    return subresource is not None and bool(subresource.kind)


def taken(backend: Backend, attributes: Attributes, row: Resource, tree: Tree) -> Tree:
    """What a webhook made of the object, decoded, with defaults, and in the form that is admitted."""
    decoded: Tree = {"kind": tree["kind"], "apiVersion": tree["apiVersion"]} | decode_as(backend, tree).tree
    backend.rules.default(decoded["apiVersion"], decoded["kind"], decoded)
    before = attributes.object
    assert before is not None
    if _is_scale(attributes):
        return scale.scale_view(attributes.resource).take(before, decoded)
    if attributes.operation is Operation.CREATE and not attributes.subresource:
        kept = {name: before["metadata"][name] for name in _SYSTEM_FIELDS if name in before["metadata"]}
        decoded["metadata"] = decoded.get("metadata", {}) | kept
    if _has_other_kind(attributes) or decoded["apiVersion"] == before["apiVersion"]:
        return decoded
    return to_stored(backend, row, decoded)


async def call(
    environment: Environment,
    backend: Backend,
    invocation: Invocation,
    attributes: Attributes,
    *,
    mutating: bool,
) -> Answer:
    """Send a review and return the answer, or raise CallFailed; ApiError where it must not even be asked."""
    hook, row = invocation.hook, invocation.row
    if attributes.dry_run and hook.spec.get("sideEffects") not in _HARMLESS:
        raise status.BadRequest(f"admission webhook {gotext.quote(hook.name)} does not support dry run")
    review.check_versions(hook)
    uid = chances.uid(backend.chance)
    new = to_webhook_version(backend, attributes, row, attributes.object)
    old = to_webhook_version(backend, attributes, row, attributes.old)
    new = without_system_fields(attributes, new) if mutating else _with_version(new, old)
    body = await backend.worker.run(
        attributes.call.size, review.request, invocation, attributes, uid, new, old
    )
    at = endpoint(backend, hook.spec.get("clientConfig") or {}, environment.services, seconds=hook.seconds)
    data = await environment.caller.post(at, body, seconds=hook.seconds)
    answer = await backend.worker.run(len(data), lambda: review.read(data, uid, mutating=mutating))
    for key, value in answer.annotations:
        attributes.call.annotations[f"{hook.name}/{key}"] = value
    for warning in answer.warnings:
        attributes.call.warn(warning)
    if not answer.allowed:
        raise review.denied(hook, answer.status)
    return answer


class Observed:
    """A call that is counted however it ends; a failure that stops nothing ends here.

    `failed_open` tells of that. As a context manager: what is raised within is what came of the call.
    """

    def __init__(
        self, environment: Environment, backend: Backend, hook: Hook, attributes: Attributes, kind: str
    ) -> None:
        self._metrics = environment.metrics
        self._clock = backend.clock
        self._hook = hook
        self._operation = attributes.operation.value
        self._kind = kind
        self._began = backend.clock.monotonic()
        self.failed_open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        hook = self._hook
        if error is None:
            self._observe(200)
        elif isinstance(error, CallFailed):
            if hook.fails_open:
                LOG.warning("Failed calling webhook, failing open %s: %s", hook.name, error)
                self._observe(error.code)
                self._metrics.fail_open(hook.name, self._kind)
                self.failed_open = True
                return True
            self._observe(error.code, CALLING)
            problem = f"failed calling webhook {gotext.quote(hook.name)}: {error}"
            raise status.internal_error(problem) from error
        elif isinstance(error, ApiError):
            is_answer = isinstance(error, review.Denied)
            self._observe(error.code if is_answer else 0, NO_ERROR if is_answer else INTERNAL)
        return False

    def _observe(self, code: int, error_type: str = "") -> None:
        seconds = self._clock.monotonic() - self._began
        outcome = {"type": self._kind, "error_type": error_type}
        self._metrics.observe(self._hook.name, self._operation, code, seconds, **outcome)
