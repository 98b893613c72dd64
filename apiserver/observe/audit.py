"""Who did what: a line of JSON for each request, as upstream's audit log has it.

Lines are whole or not there. They are written in the order in which requests ended, into a file that is opened for
appending; a file that cannot be written is told of in the server's log and stops no request.
"""

import logging
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias

import orjson
from msgspec import Struct

from apimachinery import chance as chances
from apimachinery.chance import Chance
from apimachinery.clock import Clock
from apimachinery.timestamps import format_micro_time
from apiserver.http.requestinfo import RequestInfo
from apiserver.observe.audit_policy import Level, Policy, Verdict
from apiserver.rest.call import User

LOG = logging.getLogger(__name__)
Tree: TypeAlias = dict[str, Any]


class Request(Struct, frozen=True, kw_only=True):
    """A request as the log tells of it."""

    id: str
    uri: str
    source: str
    user_agent: str
    user: User
    info: RequestInfo
    received: datetime
    verdict: Verdict
    impersonator: User | None = None


class Audit:
    """The log of one server."""

    def __init__(self, path: Path, policy: Policy, *, clock: Clock, chance: Chance) -> None:
        self._file = path.open("ab", buffering=0)
        self._policy = policy
        self._clock = clock
        self._chance = chance

    def receive(
        self, uri: str, source: str, user_agent: str, user: User, info: RequestInfo
    ) -> Request | None:
        """Begin with a request, if anything of it is written down."""
        verdict = self._policy.verdict(user, info)
        if verdict.level is Level.NONE:
            return None
        request = Request(
            id=chances.uid(self._chance),
            uri=uri,
            source=source,
            user_agent=user_agent,
            user=user,
            info=info,
            received=self._clock.now(),
            verdict=verdict,
        )
        self._write(request, "RequestReceived", request.received, {})
        return request

    def complete(self, request: Request, code: int, *, body: bytes = b"", answer: bytes = b"") -> None:
        """End with a request that was answered."""
        level, extra = request.verdict.level, {"responseStatus": _outcome(code, answer)}
        if level >= Level.REQUEST and body:
            extra |= _object("requestObject", body, request.verdict)
        if level >= Level.REQUEST_RESPONSE and answer:
            extra |= _object("responseObject", answer, request.verdict)
        self._write(request, "ResponseComplete", self._clock.now(), extra)

    def close(self) -> None:
        self._file.close()

    def _write(self, request: Request, stage: str, at: datetime, extra: Tree) -> None:
        if stage in request.verdict.omitted:
            return
        try:
            self._file.write(orjson.dumps(_event(request, stage, at) | extra) + b"\n")
        except OSError:
            LOG.exception("a line of the audit log is lost")


def _event(request: Request, stage: str, at: datetime) -> Tree:
    info = request.info
    event: Tree = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": _NAMES[request.verdict.level],
        "auditID": request.id,
        "stage": stage,
        "requestURI": request.uri,
        "verb": info.verb,
        "user": _user(request.user),
        "sourceIPs": [request.source],
        "userAgent": request.user_agent,
    }
    if info.is_resource:
        event["objectRef"] = _reference(info)
    event["requestReceivedTimestamp"] = format_micro_time(request.received)
    event["stageTimestamp"] = format_micro_time(at)
    if stage == "ResponseComplete":
        event["annotations"] = {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
    return event


_NAMES = {Level.METADATA: "Metadata", Level.REQUEST: "Request", Level.REQUEST_RESPONSE: "RequestResponse"}


def _outcome(code: int, answer: bytes) -> Tree:
    """With the server's words where it has refused: they are what such a line is read for."""
    refusal = _parsed(answer) if code >= HTTPStatus.BAD_REQUEST else None
    said = (
        {name: refusal[name] for name in _OF_STATUS if name in refusal} if isinstance(refusal, dict) else {}
    )
    return {"metadata": {}, **said, "code": code}


_OF_STATUS = ("status", "message", "reason", "details")


def _user(user: User) -> Tree:
    fields: Tree = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": dict(user.extra),
    }
    return {name: value for name, value in fields.items() if value or name == "username"}


def _reference(info: RequestInfo) -> Tree:
    fields = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {name: value for name, value in fields.items() if value}


def _object(name: str, text: bytes, verdict: Verdict) -> Tree:
    """A body as it was sent or answered, if it is JSON."""
    tree = _parsed(text)
    if tree is None:
        return {}
    if not verdict.managed_fields and isinstance(tree, dict) and isinstance(tree.get("metadata"), dict):
        tree["metadata"].pop("managedFields", None)
    return {name: tree}


def _parsed(text: bytes) -> Any:
    """None where it is no JSON."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
