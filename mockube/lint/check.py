"""The check of all objects by the server of one minor.

What other objects need at admission is really created, in the order of need, in the server that is thrown away; all
others are created as a dry run.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import wellknown
from mockube.apimachinery.groups import GroupKind
from mockube.apiserver.bootstrap.cluster import SYSTEM_NAMESPACES
from mockube.apiserver.kinds.api_resource import Resource
from mockube.importing.cleaning import DEFINITION, NAMESPACE
from mockube.importing.order import NEEDED_KINDS

from .answers import SentObject, findings_of
from .findings import LintResult, ObjectFinding, Outcome
from .objects import LintObject
from .server import Answer, MinorServer
from .unserved import unserved, unserved_version

_NEEDED: Final[Mapping[GroupKind, int]] = {
    NAMESPACE: 0,
    DEFINITION: 1,
    **dict.fromkeys((GroupKind("", "LimitRange"), *NEEDED_KINDS), 2),
}
"""The kinds of objects that others need, in the order of their creation."""
_LAST: Final = 3


class CheckOptions(Struct, frozen=True, kw_only=True):
    namespace: str = wellknown.NAMESPACE_DEFAULT
    """The namespace of objects that name none."""
    is_namespace_given: bool = True
    """Whether a user named it; otherwise charts may be for another one."""
    ignores_unknown_kinds: bool = False
    packs: str = ""
    """Packs of kinds that the cluster has."""
    definitions: Sequence[LintObject] = ()
    """The definitions that the cluster has, which are not checked."""
    release: str = ""
    """The release of charts."""
    disabled_rules: Collection[str] = ()
    """The rules for several objects that are off."""


class MinorCheck:
    def __init__(
        self, server: MinorServer, options: CheckOptions, on_step: Callable[[str], None] = lambda _: None
    ) -> None:
        self._server = server
        self._options = options
        self._on_step = on_step
        self._used_kinds: Collection[GroupKind] = ()
        """The kinds of all objects."""
        self._defined_kinds: Collection[GroupKind | None] = ()
        """The kinds of all definitions, accepted or not."""

    async def run(self, objects: Sequence[LintObject]) -> Sequence[LintResult]:
        """Return the result of each object, in their order."""
        self._used_kinds = {each.group_kind for each in objects}
        definitions = (each for each in objects if _rank(each) == _NEEDED[DEFINITION])
        self._defined_kinds = {*map(_defined_kind, (*definitions, *self._options.definitions))}
        for definition in filter(self._is_needed, self._options.definitions):
            await self._create(definition)
        results: dict[int, LintResult] = {}
        for rank in range(_LAST + 1):
            for index, item in enumerate(objects):
                if _rank(item) == rank:
                    self._on_step(
                        f"checking against {self._server.minor}: {len(results)} of {len(objects)} objects"
                    )
                    results[index] = await self._check(item)
            if rank == _NEEDED[NAMESPACE]:
                await self._create_namespaces(objects)
            elif rank == _NEEDED[DEFINITION]:
                await self._server.wait_definitions()
        return [results[index] for index in range(len(objects))]

    async def _create_namespaces(self, objects: Sequence[LintObject]) -> None:
        """Create the namespaces that exist in a cluster or are named by objects, each with its service account."""
        names = {*SYSTEM_NAMESPACES, self._options.namespace, *(each.namespace for each in objects)} - {""}
        for name in sorted(names):
            for tree in _namespace_objects(name):
                await self._create(LintObject(file="", tree=tree))

    async def _check(self, item: LintObject) -> LintResult:
        if any(finding.outcome is Outcome.REFUSED for finding in item.problems):
            return LintResult.of(item.problems)
        row = self._server.resource_of(item.api_version, item.kind)
        if row is None:
            return LintResult.of([self._unserved(item)])
        sent = SentObject(
            tree=item.tree,
            row=row,
            schema=partial(self._server.schema_of, item.api_version, item.kind),
            minor=self._server.minor,
        )
        answer = await self._send(item, row)
        return LintResult.of([*item.problems, *self._unserved_as_applied(item), *findings_of(answer, sent)])

    def _unserved_as_applied(self, item: LintObject) -> Iterator[ObjectFinding]:
        """Yield that a printed object was applied in a version that the minor does not serve."""
        api = item.applied_as
        if api is not None and self._server.resource_of(api.api_version, api.kind) is None:
            finding = unserved(api.api_version, api.kind, self._server.minor)
            yield replace(finding, message=f"last applied as {api}: {finding.message}")

    def _unserved(self, item: LintObject) -> ObjectFinding:
        if item.group_kind in self._defined_kinds:
            return unserved_version(item.api_version, item.kind)
        finding = unserved(item.api_version, item.kind, self._server.minor)
        if finding.outcome is Outcome.UNKNOWN and self._options.ignores_unknown_kinds:
            return ObjectFinding(outcome=Outcome.SKIPPED, message=finding.message)
        return finding

    async def _send(self, item: LintObject, row: Resource) -> Answer:
        namespace, body = item.namespace or self._options.namespace, item.body
        is_needed = self._is_needed(item)
        is_created = is_needed and not _has_conversion_webhook(item)
        answer = await self._server.create(row, namespace, body, dry_run=not is_created)
        if answer.is_success and is_needed and not is_created:
            await self._create(item)
        if answer.tree.get("reason") == "AlreadyExists" and item.name:
            return await self._server.patch(row, namespace, item.name, body)
        return answer

    def _is_needed(self, item: LintObject) -> bool:
        """Return whether other objects may need an object. To serve the kind of a large definition takes long."""
        rank = _rank(item)
        return rank < _LAST and (rank != _NEEDED[DEFINITION] or _defined_kind(item) in self._used_kinds)

    async def _create(self, item: LintObject) -> None:
        """Create an object if it can be created: a definition without its webhook, which does not run here."""
        row = self._server.resource_of(item.api_version, item.kind)
        if row is None:
            return
        body = item.body
        if _has_conversion_webhook(item):
            spec = {name: value for name, value in item.tree["spec"].items() if name != "conversion"}
            body = orjson.dumps({**item.tree, "spec": spec})
        await self._server.create(row, item.namespace, body, dry_run=False)


def _rank(item: LintObject) -> int:
    return _NEEDED.get(item.group_kind, _LAST)


def _namespace_objects(name: str) -> Iterator[Mapping[str, Any]]:
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": name},
    }


def _defined_kind(definition: LintObject) -> GroupKind | None:
    spec = definition.tree.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    if not isinstance(names, dict):
        return None
    return GroupKind(str(spec.get("group")), str(names.get("kind")))


def _has_conversion_webhook(item: LintObject) -> bool:
    """Return whether an object is a definition whose objects a webhook converts."""
    spec = item.tree.get("spec") if _rank(item) == _NEEDED[DEFINITION] else None
    conversion = spec.get("conversion") if isinstance(spec, dict) else None
    return isinstance(conversion, dict) and conversion.get("strategy") == "Webhook"
