"""The parts of the registry that add events to the span of a request, as upstream's handlers do."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.tracing import spans

from .body import internal_package
from .registry import Admission, Registry
from .request_context import AdmissionAttributes, RequestContext

_R = TypeVar("_R")


_CONVERTED: Final = (
    ("About to convert to expected version",),
    ("Conversion done", "About to store object in database"),
)
_EVENTS: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "create": _CONVERTED,
    "update": _CONVERTED,
    "patch": ((), ("Recorded the audit event",)),
    "delete": ((), ("About to delete object from database",)),
}
"""The events before and after the body of a request is read, by verb."""
_OPTIONS_EVENTS: Final = "Decoded delete options", "Recorded the audit event"


class TracedRegistry(Registry, frozen=True, kw_only=True):
    async def begin(self, context: RequestContext, work: Callable[..., _R], *arguments: object) -> _R:
        span = spans.recording()
        if span is None:
            return await super().begin(context, work, *arguments)
        before, after = _EVENTS.get(context.verb, ((), ()))
        if context.verb == "delete" and context.body.data:
            after = (*_OPTIONS_EVENTS, *after)
        for name in before:
            span.add_event(name)
        result = await super().begin(context, work, *arguments)
        for name in after:
            span.add_event(name)
        return result


class TracedAdmission:
    """An `Admission`."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.authorize, self.validate = admission.authorize, admission.validate

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        span = spans.recording()
        if span is not None and attributes.context.verb == "patch":
            span.add_event("About to check admission control")
        await self._admission.mutate(registry, attributes)


def go_type(resource: Resource | None) -> str:
    """Return the name of the Go type of a resource's objects."""
    if resource is None or resource.custom:
        return "*unstructured.Unstructured"
    return f"*{internal_package(resource.api_version)}.{resource.kind}"
