"""The audit log: a line of JSON for each request, as upstream's.

Each line is written completely or not at all, in the order in which requests end. A failed write is logged.

Only the owner has access to the file: it is created with mode 0600, and an existing file loses the bits that let others
read, or anybody else write. A symbolic link is refused: a user who may write to its folder cannot redirect the log.
"""

import logging
import os
import stat
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from io import FileIO
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import orjson
from msgspec import Struct

from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.authz.chain import Decision, DecisionAndReason
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.user import ImpersonatedUser, User
from mockube.component_base.clock import Clock

from .policy import AuditDecision, AuditPolicy, Level

LOG = logging.getLogger(__name__)

STDOUT: Final = Path("-")
"""The path that stands for the standard output, as upstream."""
MAX_USER_AGENT: Final = 1024
"""The maximum number of characters, as upstream."""
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PATCH: Final = "patch.webhook.admission.k8s.io/"
"""The prefix of annotations that contain parts of the object, and need the level Request."""
_ALLOWED_MODE: Final = stat.S_IRWXU | stat.S_IRGRP
"""Bits that an existing file may keep: programs that ship logs may read it through its group."""


class BadAuditLog(Exception):
    """The server cannot use the file at the path of the audit log."""


class RequestProperties(Protocol):
    """The properties of a request that the audit log contains."""

    @property
    def audit_id(self) -> str: ...

    @property
    def info(self) -> RequestInfo: ...

    @property
    def authenticated(self) -> User:
        """The user whose credentials were sent."""

    @property
    def impersonated(self) -> ImpersonatedUser | None: ...

    @property
    def decision(self) -> DecisionAndReason | None:
        """The decision of the authorizer; None if it was not called."""

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations that filters and handlers have added."""

    @property
    def name(self) -> str:
        """The name of the object, "" if there is none."""

    @property
    def uri(self) -> str: ...

    @property
    def source(self) -> str: ...

    @property
    def user_agent(self) -> str: ...

    @property
    def is_dry_run(self) -> bool: ...

    @property
    def applies(self) -> bool:
        """Whether it is a patch by server-side apply."""


class AuditedRequest(Struct, kw_only=True):
    """A request as it is logged. `user` is the authenticated user; None without one."""

    id: str
    uri: str
    source: str
    user_agent: str
    user: User | None
    info: RequestInfo
    received: datetime
    decision: AuditDecision
    is_long_running: bool = False
    """Whether the start of its response is logged, too."""
    has_started: bool = False
    """Whether that was logged."""
    name: str
    object_reference: Tree = {}
    """What `objectRef` shows of the object that was sent."""
    object: bytes = b""
    """The object or the patch that was sent, as JSON."""

    @property
    def logs_response(self) -> bool:
        """Whether the object of the response is logged."""
        return self.decision.level >= Level.REQUEST_RESPONSE

    def set_object(self, tree: ReadOnlyTree) -> None:
        """Note the object of the body, with its defaults. It may change afterwards."""
        metadata = tree.get("metadata") or {}
        self.object_reference = {name: metadata[name] for name in _IDENTITY if metadata.get(name)}
        if self.decision.level >= Level.REQUEST:
            logged = tree if self.decision.managed_fields else _without_managed_fields(tree)
            self.object = orjson.dumps(logged)

    def set_patch(self, text: bytes) -> None:
        """Note the body of a patch, if it is JSON: an apply may be YAML."""
        if self.decision.level >= Level.REQUEST:
            with suppress(orjson.JSONDecodeError):
                self.object = orjson.dumps(orjson.loads(text))


class AuditedResponse(NamedTuple):
    """The response to a request."""

    code: int
    status: bytes = b""
    """The Status that it contains, as JSON; b"" for other objects."""
    object: bytes = b""  # as JSON, if the policy wants it


NO_RESPONSE: Final = AuditedResponse(
    200, b'{"kind":"Status","metadata":{},"status":"Success","message":"Connection closed early"}'
)
"""Stands for the response to a client that has disconnected."""


_ABORT: Final = (
    b'{"status":"Failure","reason":"InternalError","message":"APIServer panic\'d: net/http: abort Handler"}'
)
ABORTED_RESPONSE: Final = AuditedResponse(500, _ABORT)
"""Stands for a response that was cut after its beginning."""


class AuditCounts:
    """Counts of the log, for metrics."""

    def __init__(self) -> None:
        self.events = 0
        """Events, including those that could not be written."""
        self.errors = 0
        """Events that could not be written."""
        self.levels: Counter[str] = Counter()
        """Requests, by the level that the policy has for them."""


class Audit:
    """The log of one server."""

    def __init__(self, path: Path, policy: AuditPolicy, *, clock: Clock) -> None:
        self._file = _open_log(path)
        self._policy = policy
        self._clock = clock
        self.counts = AuditCounts()

    def receive(self, arrival: RequestProperties, *, is_long_running: bool = False) -> AuditedRequest | None:
        """Log the arrival of a request; None if the policy logs nothing of it."""
        request = self._request(arrival, arrival.authenticated)
        if request is not None:
            request.is_long_running = is_long_running
            self._write(request, "RequestReceived", request.received, {})
        return request

    def start(self, request: AuditedRequest, arrival: RequestProperties, outcome: AuditedResponse) -> None:
        """Log the start of the response to a long-running request, once."""
        if request.is_long_running and not request.has_started:
            request.has_started = True
            self._respond("ResponseStarted", request, arrival, outcome)

    def complete(self, request: AuditedRequest, arrival: RequestProperties, outcome: AuditedResponse) -> None:
        """Log the complete response to a request."""
        self.start(request, arrival, outcome)
        self._respond("ResponseComplete", request, arrival, outcome)

    def abort(self, request: AuditedRequest, arrival: RequestProperties) -> None:
        """Log that a response was cut, in upstream's words."""
        self._respond("Panic", request, arrival, ABORTED_RESPONSE)

    def _respond(
        self, stage: str, request: AuditedRequest, arrival: RequestProperties, outcome: AuditedResponse
    ) -> None:
        extra = _identity_and_annotations(arrival, request.decision.level)
        extra["responseStatus"] = _response_status(outcome)
        if request.object:
            extra["requestObject"] = orjson.Fragment(request.object)
        self._write(request, stage, self._clock.now(), extra | _response_object(request, outcome))

    def reject(self, arrival: RequestProperties, outcome: AuditedResponse) -> None:
        """Log a request that could not be authenticated, at the same stage as upstream."""
        request = self._request(arrival, None)
        if request is not None:
            extra = {"responseStatus": _response_status(outcome)} | _response_object(request, outcome)
            self._write(request, "ResponseStarted", self._clock.now(), extra)

    def close(self) -> None:
        self._file.close()

    def _request(self, arrival: RequestProperties, user: User | None) -> AuditedRequest | None:
        decision = self._policy.decide(arrival.authenticated, arrival.info)
        self.counts.levels[_LEVEL_NAMES[decision.level]] += 1
        if decision.level is Level.NONE:
            return None
        agent = arrival.user_agent
        return AuditedRequest(
            id=arrival.audit_id,
            uri=arrival.uri,
            source=arrival.source,
            user_agent=agent if len(agent) <= MAX_USER_AGENT else f"{agent[:MAX_USER_AGENT]}...TRUNCATED",
            user=user,
            info=arrival.info,
            name=arrival.name,
            received=self._clock.now(),
            decision=decision,
        )

    def _write(self, request: AuditedRequest, stage: str, at: datetime, extra: Tree) -> None:
        if stage in request.decision.omitted:
            return
        try:
            self.counts.events += 1
            self._file.write(orjson.dumps(_event(request, stage, at) | extra) + b"\n")
        except OSError:
            self.counts.errors += 1
            LOG.exception("failed to write an event to the audit log")


def _open_log(path: Path) -> FileIO:
    if path == STDOUT:
        return FileIO(1, "ab", closefd=False)
    try:
        descriptor = os.open(path, _FLAGS, 0o600)
    except OSError as error:
        raise BadAuditLog(f"--audit-log-path: {path}: {error.strerror}") from error
    file = FileIO(descriptor, "ab")
    try:
        _restrict_mode(path, os.fstat(descriptor), descriptor)
    except BaseException:
        file.close()
        raise
    return file


def _restrict_mode(path: Path, file_status: os.stat_result, descriptor: int) -> None:
    """Remove the permissions of other users on the file, or raise BadAuditLog."""
    if not stat.S_ISREG(file_status.st_mode):
        raise BadAuditLog(f"--audit-log-path: {path} is not a regular file")
    mode = stat.S_IMODE(file_status.st_mode)
    if mode & ~_ALLOWED_MODE:
        try:
            os.fchmod(descriptor, mode & _ALLOWED_MODE)
        except OSError as error:
            raise BadAuditLog(
                f"--audit-log-path: {path} has mode {mode:04o}, which allows access by others, and another owner"
            ) from error


def _identity_and_annotations(arrival: RequestProperties, level: Level) -> Tree:
    """Return the fields of an event about impersonation, and the annotations that its level includes."""
    fields: Tree = {}
    if arrival.impersonated is not None:
        fields["impersonatedUser"] = _user_info(arrival.impersonated.user)
        if arrival.impersonated.constraint:
            fields["authenticationMetadata"] = {"impersonationConstraint": arrival.impersonated.constraint}
    if arrival.decision is not None:
        decision, reason = arrival.decision
        fields["annotations"] = {
            "authorization.k8s.io/decision": "allow" if decision is Decision.ALLOW else "forbid",
            "authorization.k8s.io/reason": reason,
        }
    annotations = {
        key: value
        for key, value in arrival.annotations.items()
        if level >= Level.REQUEST or not key.startswith(_PATCH)
    }
    if annotations:
        fields["annotations"] = {**fields.get("annotations", {}), **annotations}
    return fields


def _event(request: AuditedRequest, stage: str, at: datetime) -> Tree:
    info = request.info
    event: Tree = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": _LEVEL_NAMES[request.decision.level],
        "auditID": request.id,
        "stage": stage,
        "requestURI": request.uri,
        "verb": info.verb,
        "user": {} if request.user is None else _user_info(request.user),
        "sourceIPs": [request.source],
        "userAgent": request.user_agent,
    }
    if info.is_resource:
        event["objectRef"] = _reference(request)
    event["requestReceivedTimestamp"] = format_micro_time(request.received)
    event["stageTimestamp"] = format_micro_time(at)
    return event


_LEVEL_NAMES = {
    Level.NONE: "None",
    Level.METADATA: "Metadata",
    Level.REQUEST: "Request",
    Level.REQUEST_RESPONSE: "RequestResponse",
}


def _response_status(outcome: AuditedResponse) -> Tree:
    """Return the code, and the fields of the Status that the response contains."""
    status = orjson.loads(outcome.status) if outcome.status else {}
    return {
        "metadata": {},
        **{name: status[name] for name in _STATUS_FIELDS if name in status},
        "code": outcome.code,
    }


_STATUS_FIELDS: Final = ("status", "message", "reason", "details")


def _user_info(user: User) -> Tree:
    fields: Tree = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": dict(user.extra),
    }
    return {name: value for name, value in fields.items() if value or name == "username"}


def _reference(request: AuditedRequest) -> Tree:
    info, of_object = request.info, request.object_reference
    fields = {
        "resource": info.resource,
        "namespace": info.namespace or of_object.get("namespace"),
        "name": request.name or of_object.get("name"),
        "uid": of_object.get("uid"),
        "apiGroup": info.group,
        "apiVersion": info.version,
        "resourceVersion": of_object.get("resourceVersion"),
        "subresource": info.subresource,
    }
    return {name: value for name, value in fields.items() if value}


_IDENTITY: Final = ("namespace", "name", "uid", "resourceVersion")


def _response_object(request: AuditedRequest, outcome: AuditedResponse) -> Tree:
    text = outcome.object or outcome.status
    if not text or not request.logs_response:
        return {}
    if request.decision.managed_fields:
        # What another program stored may have several lines.
        return {"responseObject": orjson.loads(text) if b"\n" in text else orjson.Fragment(text)}
    return {"responseObject": _without_managed_fields(orjson.loads(text))}


def _without_managed_fields(tree: ReadOnlyTree) -> ReadOnlyTree:
    """Return an object, or a list or table of objects, without `metadata.managedFields`; the parameter is not changed."""
    copy = dict(tree)
    if isinstance(metadata := tree.get("metadata"), dict):
        copy["metadata"] = {name: value for name, value in metadata.items() if name != "managedFields"}
    if isinstance(items := tree.get("items"), list):
        copy["items"] = [_without_managed_fields(item) if isinstance(item, dict) else item for item in items]
    if "columnDefinitions" in tree:  # a table
        copy["rows"] = [
            row | {"object": _without_managed_fields(row["object"])} if row.get("object") else row
            for row in tree.get("rows") or ()
        ]
    return copy
