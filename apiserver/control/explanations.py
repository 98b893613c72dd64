"""Explanation: why an object is in its state, or why a request was refused. It is posted as reviews are, and not stored.

The explanations are pure functions in `mockube.explanations`. They are imported at the first one: the filters of the scheduler
are among them, which a server does not need otherwise.
"""

import asyncio
from functools import partial
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta, status
from mockube.apimachinery.errors import FieldError, not_found, required
from mockube.apimachinery.groups import CONTROL, GroupKind, GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import BadRequest, Details
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.authz.chain import Attributes, forbidden
from mockube.apiserver.event_loop import Worker
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext

from .changes import CHANGE_TYPES
from .fact_collector import FactCollector, FactSources, TooManyQuestions
from .kind import ControlKind
from .posted import answer_posted, read_posted
from .requests import REQUEST, Requests
from .schemas import integer, object_of, text
from .strategy import ControlStrategy

MAX_AT_ONCE: Final = 2
"""The explanations whose facts are in memory."""
MAX_PENDING: Final = 50
"""The explanations that are made, or wait for that; more are refused."""
RETRY_AFTER: Final = 1
_UNNAMED: Final = "request"
_MAX_NAME: Final = 253
_FAULTS: Final = GroupResource(CONTROL, "faults")
_OBJECT: Final = {
    "apiVersion": text("Its apiVersion; without it, the kind of a group of Kubernetes is meant."),
    "kind": text("Its kind.", maxLength=_MAX_NAME),
    "namespace": text("Its namespace.", maxLength=_MAX_NAME),
    "name": text("Its name.", maxLength=_MAX_NAME),
}


def _list_of(description: str, *required_fields: str, **properties: Tree) -> Tree:
    return {
        "type": "array",
        "description": description,
        "items": object_of(description, properties, *required_fields),
    }


EXPLANATION: Final = ControlKind(
    name="Explanation",
    plural="explanations",
    description="Explanation says why an object is in its state, or why a request was refused. It is created, as a review is, and not stored. It shows only what its "
    "creator may read.",
    spec={
        "description": "What to explain.",
        "properties": {
            "object": object_of("The object.", _OBJECT),
            "request": object_of(
                "The recorded request, instead of an object.",
                {
                    "name": text(
                        "The name of the Request, or its audit id; without it, the newest one that was refused, but for what was not found.",
                        maxLength=_MAX_NAME,
                    )
                },
            ),
        },
    },
    is_spec_required=True,
    status={
        "description": "The explanation.",
        "properties": {
            "state": text(
                "Explained if the cause is known, NoProblem if the object is as it should be, Unknown if the cause is not known.",
                enum=["Explained", "NoProblem", "Unknown"],
            ),
            "cause": text("The cause, in one sentence; or that it is not known."),
            "object": object_of("The object that is explained.", {**_OBJECT, "uid": text("Its uid.")}),
            "evidence": _list_of(
                "The facts that show the cause.",
                text=text("The fact."),
                source=text("Where it was found: a field, a condition, an Event, a log."),
                time=text("When it was recorded."),
            ),
            "nodes": _list_of(
                "Which plugin of the scheduler rejects which node; the nodes that lack least come first.",
                node=text("The name of the node."),
                plugin=text("The plugin."),
                reason=text("Its reason, as in the message of the scheduler."),
                detail=text("What the node lacks."),
            ),
            "remedies": _list_of(
                "What would change the state.",
                text=text("The change."),
                command=text("A command that makes it."),
            ),
            "related": _list_of(
                "Other objects, and their own causes.",
                object=object_of("The object.", _OBJECT),
                cause=text("Its cause."),
            ),
            "origins": _list_of(
                "The fields that the cause names, and who wrote them last; the first one is that of the cause.",
                object=object_of("The object, which may be deleted.", _OBJECT),
                field=text("The path of the field; absent if the object itself is meant."),
                writes=_list_of(
                    "The newest writes that changed it, the newest first.",
                    revision=integer("The revision of the store that the write made; 0 if it is not known."),
                    source=text(
                        "managedFields for what these say of a write before the history; absent for a write of the history."
                    ),
                    type=text("What happened to the object.", enum=[*CHANGE_TYPES]),
                    time=text("When it was written."),
                    user=text("Who wrote it."),
                    program=text("The field manager, or else the User-Agent."),
                    verb=text("The verb of the request."),
                    before=text("What the field was, as JSON; absent if it was not set."),
                    after=text("What the field became, as JSON; absent if it was removed."),
                ),
                command=text("A command that shows all writes."),
            ),
            "unreadable": {
                "type": "array",
                "description": "What the creator may not read, of what the explanation needs.",
                "items": {"type": "string"},
            },
            "omitted": {
                "type": "object",
                "description": "How many items of a list were left out, by the name of the list.",
                "additionalProperties": integer("The number of items."),
            },
        },
    },
    columns=(),
    verbs=("create",),
    unlisted_verbs=(),
)


_GROUP_KIND: Final = GroupKind(CONTROL, EXPLANATION.name)


class _Subject(Struct, frozen=True, kw_only=True):
    row: Resource
    namespace: str
    name: str


class Explanations(ControlStrategy):
    kind = EXPLANATION

    def __init__(self, cluster: Registry, sources: FactSources, requests: Requests) -> None:
        self._cluster, self._sources, self._requests = cluster, sources, requests
        # A worker of its own, so that large writes do not wait for explanations of large clusters.
        self._worker = Worker()
        self._free = asyncio.Semaphore(MAX_AT_ONCE)
        self._pending = 0

    def verbs(self) -> OwnVerbs:
        return {(EXPLANATION.group_resource, ""): {"create": self.create}}

    async def create(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await read_posted(registry, context)
        if self._pending == MAX_PENDING:
            raise status.too_many_requests(f"{MAX_PENDING} explanations are in progress", RETRY_AFTER)
        self._pending += 1
        try:
            async with self._free:
                of_answer = await self._answer(registry, tree, context)
                return answer_posted(tree, of_answer, (of_answer.get("object") or {}).get("name") or _UNNAMED)
        finally:
            self._pending -= 1

    async def _answer(self, control: Registry, tree: ReadOnlyTree, context: RequestContext) -> Tree:
        collector = FactCollector(self._cluster, control, self._sources, context.user, self._worker)
        try:
            spec = tree["spec"]
            if (spec.get("object") is None) is (spec.get("request") is None):
                raise self._invalid(required(ROOT.child("spec"), "one of object and request"))
            if spec.get("request") is not None:
                return await self._explain_request(spec["request"], context, collector)
            return await self._explain_object(control, spec, context, collector)
        except TooManyQuestions as error:
            raise BadRequest(str(error), Details()) from error

    async def _explain_object(
        self, control: Registry, spec: ReadOnlyTree, context: RequestContext, collector: FactCollector
    ) -> Tree:
        subject = self._find_subject(spec.get("object") or {})
        row = subject.row
        registry = control if row.group == CONTROL else self._cluster
        if not await collector.may("get", row.group_resource, subject.namespace, subject.name):
            raise forbidden(Attributes.of_row(context.user, "get", row, subject.namespace, subject.name), "")
        await registry.watch_cache.fresh()
        stored = registry.find_cached(row.group_resource, subject.namespace, subject.name)
        if stored is None:
            raise status.not_found(row.group_resource, subject.name)
        from mockube.explanations.catalog import explain  # noqa: PLC0415 - as above
        from mockube.explanations.explanation import status_of  # noqa: PLC0415 - as above

        found = stored.tree()
        explanation = await collector.explain(partial(explain, row.group_resource, found))
        return status_of(explanation, found, collector.facts.unreadable)

    async def _explain_request(
        self, named: ReadOnlyTree, context: RequestContext, collector: FactCollector
    ) -> Tree:
        """Explain a recorded request to whoever may read it."""
        name = named.get("name") or ""
        recorded = await self._requests.tree_of(name, self._requests.rights(context))
        needed = (
            meta.name(recorded) if name and recorded is not None else name
        )  # it may be named by its audit id
        if not await collector.may("get", REQUEST.group_resource, "", needed):
            raise status.forbidden(REQUEST.group_resource, name, "you may not get requests")
        if recorded is None and not name:
            raise BadRequest("no request was refused that is still recorded", Details())
        if recorded is None:
            raise status.not_found(REQUEST.group_resource, name)
        from mockube.explanations.explanation import status_of  # noqa: PLC0415 - as above
        from mockube.explanations.refused import explain_request  # noqa: PLC0415 - as above

        await self._cluster.watch_cache.fresh()
        explanation = await collector.explain(partial(explain_request, recorded))
        return status_of(explanation, recorded, collector.facts.unreadable)

    def _find_subject(self, named: ReadOnlyTree) -> _Subject:
        path = ROOT.child("spec").child("object")
        missing = [required(path.child(field)) for field in ("kind", "name") if not named.get(field)]
        if missing:
            raise self._invalid(*missing)
        rows = [*self._rows(named["kind"], named.get("apiVersion") or "")]
        if not rows:
            raise self._invalid(not_found(path.child("kind"), named["kind"]))
        row, namespace = rows[0], named.get("namespace") or ""
        if row.namespaced and not namespace:
            raise self._invalid(required(path.child("namespace"), f"{row.kind} is namespaced"))
        return _Subject(row=row, namespace=namespace if row.namespaced else "", name=named["name"])

    def _rows(self, kind: str, api_version: str) -> list[Resource]:
        """Return the rows of a kind, those of built-in groups first."""
        group = api_version.rpartition("/")[0]
        rows = [
            row
            for row in self._cluster.rows.values()
            if (not row.virtual or row.group_resource == _FAULTS)
            and kind in (row.kind, row.name, row.kind.lower())
            and (not api_version or row.group == group)
        ]
        return sorted(rows, key=lambda row: (row.custom, row.group))

    @staticmethod
    def _invalid(*problems: FieldError) -> status.ApiError:
        return status.invalid(_GROUP_KIND, "", problems)
