"""The target of a HorizontalPodAutoscaler: its resource, by discovery, and its scale subresource."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import gotext, labels
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.labels import Operator, Requirement, Selector, SelectorError
from mockube.apimachinery.status import ApiError, Conflict
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import Discovery, discover
from mockube.client.resources import Key, Resource
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock

DISCOVERY_TTL: Final = timedelta(seconds=30)
"""The time after which a discovery is repeated, as in upstream."""
MAX_ATTEMPTS: Final = 5
WAIT_SECONDS: Final = 0.01
"""The wait between attempts of an update after a conflict."""


class ScaleError(Exception):
    """A scale cannot be read; the message is that of client-go's scale client."""

    def __init__(self, problem: str) -> None:
        super().__init__(
            "received an object from a /scale endpoint which was not convertible to autoscaling Scale: "
            f"failed to parse target selector: {problem}"
        )


class UnknownKindError(Exception):
    def __init__(self, kind: GroupKind) -> None:
        super().__init__(f"no matches for kind {gotext.quote(kind.kind)} in group {gotext.quote(kind.group)}")


class RestMapper:
    """Maps kinds to the server's resources, which are discovered at most every half minute."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._discovery: Discovery | None = None
        self._until = 0.0
        self._by_kind: dict[GroupKind, Resource[ReadOnlyTree]] = {}

    async def find(self, kind: GroupKind) -> Resource[ReadOnlyTree]:
        await self._refresh()
        if kind not in self._by_kind:
            raise UnknownKindError(kind)
        return self._by_kind[kind]

    async def versions(self, group: str) -> Sequence[str]:
        """Return the versions of a group that the server serves, the preferred one first."""
        return (await self._refresh()).versions.get(group, ())

    async def _refresh(self) -> Discovery:
        if self._discovery is None or self._clock.monotonic() >= self._until:
            self._discovery = await discover(self._client)
            self._until = self._clock.monotonic() + DISCOVERY_TTL.total_seconds()
            self._by_kind = {}
            for entry in self._discovery.resources:
                self._by_kind.setdefault(
                    entry.resource.group_kind, replace(entry.resource, metadata_only=False)
                )
        return self._discovery


class ScaleClient:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def scale(self, resource: Resource[Any], key: Key) -> ReadOnlyTree:
        """Return the scale with its selector in canonical form; raise `ScaleError` if the selector is invalid."""
        scale = await self._client.get(resource, key, subresource="scale")
        status = scale.get("status") or {}
        selector = status.get("selector")
        return {**scale, "status": {**status, "selector": _canonical(selector)}} if selector else scale

    async def rescale(self, resource: Resource[Any], scale: ReadOnlyTree, replicas: int) -> None:
        """Update the replicas of a scale; retry after a conflict, and raise the error of the last attempt."""
        for attempt in range(MAX_ATTEMPTS):
            body = {**scale, "spec": {**(scale.get("spec") or {}), "replicas": replicas}}
            try:
                await self._client.update(resource, body, subresource="scale")
            except Conflict:
                if attempt == MAX_ATTEMPTS - 1:
                    raise
                scale = await self._latest_scale(resource, scale)
            else:
                return
            await self._clock.sleep(WAIT_SECONDS)

    async def _latest_scale(self, resource: Resource[Any], scale: ReadOnlyTree) -> ReadOnlyTree:
        try:
            return await self.scale(resource, Key.of(scale))
        except (ApiError, NoResponse):
            return scale


_LABEL_SELECTOR_OPERATORS: Final = {
    Operator.DOUBLE_EQUALS: Operator.EQUALS,
    Operator.NOT_EQUALS: Operator.NOT_IN,
}
"""The operators of label selectors in objects, by operators that only texts have."""


def _canonical(text: str) -> str:
    """Return the text of a selector with the operators of label selectors in objects."""
    try:
        requirements = labels.parse(text).requirements
    except SelectorError as error:
        raise ScaleError(f"couldn't parse the selector string {gotext.quote(text)}: {error}") from error
    for requirement in requirements:
        if requirement.operator in (Operator.GREATER_THAN, Operator.LESS_THAN):
            raise ScaleError(f"{gotext.quote(requirement.operator.value)} isn't supported in label selectors")
    converted = (
        Requirement(
            requirement.key,
            _LABEL_SELECTOR_OPERATORS.get(requirement.operator, requirement.operator),
            requirement.values,
        )
        for requirement in requirements
    )
    return str(Selector(tuple(converted)))
