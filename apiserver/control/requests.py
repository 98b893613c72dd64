"""Request: what was sent to the server, and how it responded."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from functools import partial
from http import HTTPMethod
from typing import Final

import orjson

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Expired
from mockube.apimachinery.timestamps import format_micro_time, format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver import fields
from mockube.apiserver.authz.rbac.policy import RBACPolicy
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.fields import FieldSelectorError, Term, selectable
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import RequestContext
from mockube.apiserver.storage.stored_object import StoredObject, canonical_custom
from mockube.component_base.loop import yield_to_loop

from . import served_names
from .access import UserRights
from .bodies import NO_BODY, fields_of
from .kind import AGE, API_VERSION, ControlKind
from .matching import VERBS as VERBS_OF_RESOURCES
from .matching import check_verb
from .recorder import OWN_RESOURCE, RecordedRequest, RequestRecorder
from .records import TOO_OLD, VERBS, Listed, Record, RecordStrategy
from .schemas import column, integer, text

_SECRETS: Final = "secrets"
_NOT_QUOTING: Final = (401, 404)
"""The codes of responses before an object is read. With other ones validation and policies may quote values; webhooks may with any."""
_OF_WEBHOOKS: Final = "admission webhook "
_OF_POLICIES: Final = re.compile(
    r"""secrets "[^"]*" is forbidden: ValidatingAdmissionPolicy '[^']*'( with binding '[^']*')? denied request: """
)
_OF_AUTHORIZERS: Final = 'is forbidden: User "'
_FORBIDDEN: Final = 403
_DIGITS: Final = 8
"""The digits of a name, so that names sort by arrival."""
_NAME: Final = re.compile(r"[0-9]{1,19}")
_CODE: Final = re.compile(r"0|[1-5][0-9]{2}")
"""A code, or the 0 of a request without a response."""
_SERVED: Final[Mapping[str, Callable[[str, Collection[Resource]], None]]] = {
    "group": served_names.check_served_group,
    "resource": partial(served_names.check_served_resource, with_group=False),
    "subresource": served_names.check_served_subresource,
}
"""What raises ValueError for a value of a field that no served resource has; requests that were recorded may have it."""
_VERBS: Final = tuple(dict.fromkeys((*VERBS_OF_RESOURCES, *(method.lower() for method in HTTPMethod))))
"""The verbs of requests: those of RBAC, and methods in lower case of requests for no resource."""
_NO_FIELDS: Final[Tree] = {}
_FORBIDDEN_BODY: Final[Tree] = {"bodyOmitted": "it is for whoever may get the object"}


def _summary(tree: Tree) -> Tree:
    """Return what the columns of a request show."""
    spec, status = tree["spec"], tree.get("status") or {}
    resource = "/".join(spec[field] for field in ("resource", "subresource") if field in spec)
    code = str(status["code"]) if "code" in status else "cut" if status.get("isCut") else ""
    return {"resource": resource, "code": code}


REQUEST: Final = ControlKind(
    name="Request",
    plural=OWN_RESOURCE,
    description="Request is a request that was sent to the server. The newest ones are kept, those of the controllers apart from "
    "all others. Requests for requests are not among them. A user sees its own, and those for what it may list; "
    "of others, those for this group if it may list everything, and connections that it may make.",
    spec={
        "description": "What was sent.",
        "properties": {
            "time": {"type": "string", "format": "date-time", "description": "When it arrived."},
            "user": text(
                "The name of the user, of the impersonated one if there is one. Empty if nobody was authenticated."
            ),
            "agent": text("The User-Agent of the client."),
            "verb": text(
                "The verb, as in a rule of RBAC; of a request for no resource, the method in lower case."
            ),
            "group": text("The API group of the resource; empty for the core group."),
            "version": text("The version of the API group."),
            "resource": text("The plural of the resource; empty for a request for no resource."),
            "subresource": text("The subresource, such as status."),
            "namespace": text("The namespace of the object."),
            "name": text("The name of the object."),
            "uri": text("The path and the query, as they were sent."),
            "bytes": integer("The bytes of the body."),
            "body": {
                "x-kubernetes-preserve-unknown-fields": True,
                "description": "The body of a request that has ended: an object, options, or a patch. Only a server with "
                "--control-request-bodies keeps bodies, and whoever may get the object sees them. The values of Secrets are masked.",
            },
            "bodyOmitted": text("Why a body is not here that was kept or would have been."),
            "auditID": text(
                "The id of the request in the audit log, and in the header Audit-Id of the response."
            ),
        },
    },
    status={
        "description": "The response; empty while the request is in progress, as a watch is. Without a code, the request ended without "
        "a response: its connection was cut, or its client left.",
        "properties": {
            "code": {"type": "integer", "format": "int32", "description": "The status code of the response."},
            "seconds": {
                "type": "number",
                "description": "The seconds from the arrival to the end of the response.",
            },
            "bytes": integer("The bytes of the body of the response."),
            "revision": integer("The last revision of the store that the request wrote."),
            "fault": text("The name of the Fault that was injected."),
            "answeredByFault": {
                "type": "boolean",
                "description": "Whether that Fault gave the response, which the server did not.",
            },
            "isCut": {
                "type": "boolean",
                "description": "Whether that Fault cut the connection: in place of a response, or, if there is a code, during one.",
            },
            "message": text(
                "The message of an error. Those that may quote a value of a Secret are left out."
            ),
        },
    },
    columns=(
        column("User", ".spec.user", "The name of the user."),
        column("Verb", ".spec.verb", "The verb."),
        column("Resource", ".summary.resource", "The resource and the subresource, as in a rule of RBAC."),
        column("Namespace", ".spec.namespace", "The namespace of the object."),
        column("Object", ".spec.name", "The name of the object."),
        column(
            "Code", ".summary.code", "The status code, or cut if a Fault cut the connection in its place."
        ),
        column("Seconds", ".status.seconds", "The seconds until the end of the response.", type_="number"),
        column("Agent", ".spec.agent", "The User-Agent.", priority=1),
        column("Revision", ".status.revision", "The revision that was written.", priority=1, type_="integer"),
        column("Fault", ".status.fault", "The Fault that was injected.", priority=1),
        column("URI", ".spec.uri", "The path and the query.", priority=1),
        AGE,
    ),
    summary=_summary,
    selectable=(
        selectable("user", "spec.user"),
        selectable("agent", "spec.agent"),
        selectable("verb", "spec.verb"),
        selectable("group", "spec.group"),
        selectable("resource", "spec.resource"),
        selectable("subresource", "spec.subresource"),
        selectable("namespace", "spec.namespace"),
        selectable("name", "spec.name"),
        selectable("code", "status.code"),
        selectable("auditID", "spec.auditID"),
        selectable("fault", "status.fault"),
    ),
    verbs=VERBS,
    unlisted_verbs=(),
)


class Requests(RecordStrategy):
    """The recorded requests as objects."""

    kind = REQUEST

    def __init__(self, recorder: RequestRecorder, cluster: Registry, policy: RBACPolicy) -> None:
        super().__init__(cluster.layout.root)
        self._recorder = recorder
        self._cluster, self._policy = cluster, policy
        self._epoch = f"{recorder.newest:x}"

    @property
    def newest(self) -> int:
        return self._recorder.newest

    def check_term(self, term: Term) -> None:
        if term.field == "verb":
            check_verb(term.value, _VERBS)
        elif term.field == "code" and not _CODE.fullmatch(term.value):
            raise ValueError(f'"{term.value}" is not a status code, such as 409: those are 100 to 599')
        elif term.field in _SERVED and not any(
            getattr(recorded.outcome.info, term.field) == term.value
            for recorded in self._recorder.published()
        ):
            _SERVED[term.field](term.value, self._cluster.rows.values())

    async def find(self, context: RequestContext) -> StoredObject | None:
        found, rights = self._find(context.name), self.rights(context)
        if found is None or not await may_see(rights, found):
            return None
        return self._stored(found, await self._body(found, rights))

    def rights(self, context: RequestContext) -> UserRights:
        return UserRights(self._cluster, self._policy, context)

    async def _body(self, recorded: RecordedRequest, rights: UserRights) -> Tree:
        """Return the fields for the body of a request; none if the user may not get the object."""
        if recorded.ended is None or recorded.ended.body is NO_BODY:
            return _NO_FIELDS
        info = recorded.ended.info
        resource = GroupResource(info.group, info.resource)
        if not await rights.may("get", resource, info.namespace):
            return _FORBIDDEN_BODY
        return fields_of(recorded.ended.body, resource)

    def _find(self, name: str) -> RecordedRequest | None:
        found = self._recorder.find(int(name)) if _NAME.fullmatch(name) else None
        return None if found is None or _name_of(found) != name else found

    async def tree_of(self, name: str, rights: UserRights) -> Tree | None:
        """Return a request by its name or audit id, or for "" the newest one that was refused, of those that a user may see.

        None if it is not recorded any more, or if the user may not see it.
        """
        if not name:
            found = await self._newest_refused(rights)
        else:
            found = self._find(name) or self._recorder.find_audited(name)
        if found is None or not await may_see(rights, found):
            return None
        tree = self._tree(found, _status_of(found))
        tree["spec"]["groups"] = [*found.outcome.access.groups]
        return tree

    async def _newest_refused(self, rights: UserRights) -> RecordedRequest | None:
        for recorded in self._recorder.refused():
            if await may_see(rights, recorded):
                return recorded
        return None

    async def all(self, context: RequestContext, version: int | None = None) -> tuple[int, Sequence[Listed]]:
        newest, listed = self._recorder.newest, list[Listed]()
        version = newest if version is None else min(version, newest)
        rights, user = self.rights(context), _selected_user(context)
        for position, recorded in enumerate(self._recorder.published()):
            if position % QUICK_SLICE == QUICK_SLICE - 1:
                await yield_to_loop()
            if recorded.first_version > version or user not in (None, recorded.outcome.user):
                continue
            if await may_see(rights, recorded):
                listed.append(Listed(_name_of(recorded), partial(self._at, version, recorded, rights)))
        return version, listed

    async def _at(self, version: int, recorded: RecordedRequest, rights: UserRights) -> StoredObject:
        """Return a request as it was at a version."""
        if recorded.version > version:  # it has ended since
            return self._before(recorded)
        return self._stored(recorded, await self._body(recorded, rights))

    async def follow(
        self, version: int, context: RequestContext
    ) -> AsyncGenerator[tuple[int, Sequence[Record]], None]:
        recorder, changed, rights = self._recorder, asyncio.Event(), self.rights(context)
        user = _selected_user(context)
        recorder.watchers.add(changed)
        try:
            while version >= recorder.oldest:
                changed.clear()
                reached, records = await self._since(version, rights, user)
                yield reached, records
                version = reached
                if version >= recorder.newest:
                    await changed.wait()
                await yield_to_loop()  # what is published together is built together
            raise Expired(TOO_OLD)
        finally:
            recorder.watchers.discard(changed)

    async def _since(
        self, version: int, rights: UserRights, user: str | None
    ) -> tuple[int, Sequence[Record]]:
        published = self._recorder.published_since(version)[:QUICK_SLICE]
        records = [
            Record(
                self._stored(recorded, await self._body(recorded, rights)),
                self._before(recorded) if recorded.first_version <= version else None,
            )
            for recorded in published
            if user in (None, recorded.outcome.user) and await may_see(rights, recorded)
        ]
        return (published[-1].version if published else self._recorder.newest), records

    def _before(self, recorded: RecordedRequest) -> StoredObject:
        """Return a request as it was while it was in progress."""
        return self._encode(recorded, {}, recorded.first_version)

    def _stored(self, recorded: RecordedRequest, body: Tree) -> StoredObject:
        return self._encode(recorded, _status_of(recorded), recorded.version, body)

    def _encode(
        self, recorded: RecordedRequest, status: Tree, version: int, body: Tree = _NO_FIELDS
    ) -> StoredObject:
        tree = self._tree(recorded, status)
        tree["spec"] |= body
        return StoredObject(self._prefix + _name_of(recorded).encode(), canonical_custom(tree), version)

    def _tree(self, recorded: RecordedRequest, status: Tree) -> Tree:
        name = _name_of(recorded)
        metadata = {
            "name": name,
            "uid": f"{self._epoch}-{name}",
            "creationTimestamp": format_time(recorded.at),
        }
        tree = {
            "kind": REQUEST.name,
            "apiVersion": API_VERSION,
            "metadata": metadata,
            "spec": _spec_of(recorded),
        }
        return {**tree, "status": status} if status else tree


async def may_see(rights: UserRights, recorded: RecordedRequest) -> bool:
    """Return whether a user may see a request: whoever may list requests sees its own, and those for what it may list."""
    outcome = recorded.outcome
    return await rights.may_see(outcome.info, (outcome.user, outcome.access.requestor))


def _selected_user(context: RequestContext) -> str | None:
    """Return the only user whose requests a field selector selects: those of others, as of all controllers, need not be built."""
    try:
        return fields.parse(context.parameter("fieldSelector")).requires_exact_match("user")
    except FieldSelectorError:
        return None


def message_of(recorded: RecordedRequest) -> str:
    """Return the message of an error; "" if there is none, or if it may contain a secret value."""
    outcome = recorded.outcome
    if not outcome.problem:
        return ""
    message = str(orjson.loads(outcome.problem).get("message") or "")
    if outcome.info.resource != _SECRETS or _quotes_nothing(outcome.code, message):
        return message
    denial = _OF_POLICIES.match(message)  # what follows may be of a messageExpression
    return denial[0] if denial else ""


def _quotes_nothing(code: int | None, message: str) -> bool:
    """Return whether the message of an error certainly contains no value of an object."""
    is_about_rights = code == _FORBIDDEN and _OF_AUTHORIZERS in message
    return (code in _NOT_QUOTING or is_about_rights) and not message.startswith(_OF_WEBHOOKS)


def _name_of(recorded: RecordedRequest) -> str:
    return f"{recorded.number:0{_DIGITS}d}"


def _spec_of(recorded: RecordedRequest) -> Tree:
    outcome = recorded.outcome
    info = outcome.info
    spec: Tree = {
        "time": format_micro_time(recorded.at),
        "user": outcome.user,
        "agent": outcome.agent,
        "verb": info.verb,
        "group": info.group,
        "version": info.version,
        "resource": info.resource,
        "subresource": info.subresource,
        "namespace": info.namespace,
        "name": info.name,
        "uri": outcome.uri,
        "bytes": outcome.received,
        "auditID": outcome.audit_id,
    }
    return {field: value for field, value in spec.items() if value}


def _status_of(recorded: RecordedRequest) -> Tree:
    if not recorded.has_ended:
        return {}
    outcome = recorded.outcome
    status: Tree = {
        "code": outcome.code,
        "seconds": round(outcome.seconds, 6),
        "bytes": outcome.sent,
        "revision": outcome.revision,
        "fault": outcome.fault,
        "answeredByFault": bool(outcome.fault) and outcome.is_answered_by_fault,
        "isCut": outcome.is_cut,
        "message": message_of(recorded),
    }
    return {field: value for field, value in status.items() if value or field == "seconds"}
