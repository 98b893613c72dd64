"""The context and the result of a request for an object or a collection, independent of the transport.

The module also parses and validates the options, and has the attributes for admission plugins. A number that cannot be
parsed is a bad request; a value that is not allowed makes `CreateOptions`, `ListOptions` and so on invalid.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery import errors, gotext, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource, Subresource
from mockube.apiserver.kinds.common.objectmeta import check_printable
from mockube.apiserver.storage.journal import Author
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import User
from mockube.apiserver.wire.negotiation import patch_media_type
from mockube.etcd.kv import HEAD, Revision

from .request_work import RequestWork


class Body(Struct, frozen=True, kw_only=True):
    """The body of a request, as it was sent."""

    data: bytes
    media_type: str = ""

    @property
    def applies(self) -> bool:
        """Whether it is an applied configuration. Media types have no case."""
        return patch_media_type(self.media_type) in APPLY_TYPES


NO_BODY = Body(data=b"")


class AuditedBody(Protocol):
    """Receives the parts of a body that the audit log contains."""

    def set_object(self, tree: Tree, /) -> None:
        """Record a decoded object, which may change afterwards."""

    def set_patch(self, text: bytes, /) -> None: ...


class RequestReport(Struct, kw_only=True):
    """What a request reports besides its result: warnings to the client, and what the audit log says of it."""

    warnings: list[str] = []
    annotations: dict[str, str] = {}
    """Annotations of the audit event."""
    audited: AuditedBody | None = None
    """None if the audit log contains nothing of the request's body."""
    mutating_seconds: float = 0
    """The time of its mutating admission webhooks."""
    validating_seconds: float = 0

    def add_webhook(self, kind: str, seconds: float) -> None:
        """Add the time of an admission webhook: mutating ones are called one after the other, the others together."""
        if kind == "admit":
            self.mutating_seconds += seconds
        else:
            self.validating_seconds = max(seconds, self.validating_seconds)

    def warn(self, text: str) -> None:
        """Add a warning to the response, which shows it once."""
        self.warnings.append(text)


class RequestContext(Struct, kw_only=True):
    """One request for an object or a collection: what it asks for, and by whom."""

    verb: str
    resource: Resource
    subresource: Subresource | None = None
    namespace: str = ""
    name: str = ""
    query: Mapping[str, Sequence[str]] = {}
    revision: Revision = HEAD
    """The revision at which a get or a list reads the store and a watch begins, unless a list has an exact one of the client; HEAD: the newest."""
    body: Body = NO_BODY
    user: User
    authenticated: User | None = None
    """The user whose credentials a client sent, which may impersonate `user`."""
    constraint: str = ""
    """The verb that allowed the impersonation, which is limited to some requests; "" if it is not limited."""
    credentials_end: float | None = None
    """When the token of the client expires, in seconds since 1970 by the cluster's clock; None if that is not known."""
    user_agent: str = ""
    audit_id: str = ""
    """The id of the request in the audit log; "" if it is none of a client."""
    part_of: "RequestContext | None" = None
    """The request of a client that this one is a part of: the author of its writes."""
    is_internal: bool = False
    """Whether it is a part of another request that was already admitted, so that admission is not run again."""
    report: RequestReport = field(default_factory=RequestReport)
    work: RequestWork = field(default=None)  # type: ignore[assignment]
    """Made below, from the body and the resource."""

    def __post_init__(self) -> None:
        body_size = len(self.body.data)
        self.work = RequestWork(user=self.user.name, body_size=body_size, factor=self.resource.work)

    @property
    def is_unstructured(self) -> bool:
        """Whether the object is a custom one, which has no Go struct upstream; its Scale has one."""
        return self.resource.custom and not (self.subresource and self.subresource.kind)

    def author(self, manager: str = "") -> Author:
        """Return the author of a write of this request; `manager` is the field manager, if the write has one."""
        origin = self.part_of or self
        return Author.of(
            user=origin.user.name,
            agent=origin.user_agent,
            verb=origin.verb,
            subresource=origin.subresource.name if origin.subresource else "",
            manager=manager,
            audit_id=origin.audit_id,
        )

    def parameter(self, name: str) -> str:
        """Return a parameter of the query; "" if it is absent."""
        values = self.query.get(name)
        return values[0] if values else ""

    def number(self, name: str) -> int | None:
        """Return a parameter as an int64, as Go parses it; None if it is absent. An empty one is not a number."""
        if name not in self.query:
            return None
        try:
            return gotext.parse_int(self.parameter(name))
        except gotext.NumberError as error:
            raise status.BadRequest(str(error)) from error

    def flag(self, name: str) -> bool | None:
        """Return a parameter as upstream parses a flag: true unless it is "0" or "false"; None if it is absent."""
        return self.parameter(name).lower() not in ("0", "false") if name in self.query else None


class ObjectResult(Struct, frozen=True, kw_only=True):
    """One object: the stored one, or a tree if the result differs from the stored object."""

    code: int = 200
    stored: StoredObject | None = None
    tree: Tree | None = None

    def object(self) -> Tree:
        if self.tree is not None:
            return self.tree
        assert self.stored is not None
        return self.stored.tree()

    @property
    def is_status(self) -> bool:
        return self.tree is not None and self.tree["kind"] == "Status"


class ListResult(Struct, frozen=True, kw_only=True):
    """A list: its items as they are stored, and its metadata."""

    api_version: str
    kind: str
    items: Sequence[StoredObject]
    metadata: Mapping[str, Any]
    named: bool = False
    """Whether the items have kind and apiVersion, like those of custom resources."""


# --- attributes for admission


class Operation(Enum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"

    __hash__ = object.__hash__
    """The hash of Enum is a function in Python, and every write calls it."""


Target: TypeAlias = tuple[str, str, str]
"""The group, the resource, and the subresource or "", that a request writes."""


class Reinvocation(Struct, kw_only=True):
    """The state of reinvocation: mutating plugins are reinvoked if a later one changed the object."""

    is_reinvocation: bool = False
    is_wanted: bool = False
    state: dict[str, Any] = {}
    """Data that plugins pass from the mutating to the validating phase, each under its own name."""


class AdmissionAttributes(Struct, kw_only=True):
    """The attributes of one write for admission plugins. Only mutating plugins change `object`."""

    operation: Operation
    context: RequestContext
    name: str
    object: Tree | None
    old: Tree | None = None
    dry_run: bool = False
    patched: Any = None
    """The result of a patch, before it was decoded as the object's kind."""
    is_unpruned: bool = False
    """Whether a plugin has changed a custom object, whose unknown fields are dropped only when it is stored."""
    reinvocation: Reinvocation = field(default_factory=Reinvocation)
    target: Target = ("", "", "")
    """Derived from the context."""

    def __post_init__(self) -> None:
        # Computed once, because every plugin may use it.
        resource = self.context.resource
        self.target = resource.group, resource.name, self.subresource

    @property
    def resource(self) -> Resource:
        return self.context.resource

    @property
    def namespace(self) -> str:
        return self.context.namespace

    @property
    def subresource(self) -> str:
        return self.context.subresource.name if self.context.subresource else ""


# --- options

META = "meta.k8s.io"
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
MAX_FIELD_MANAGER = 128

_PATCH_OPTIONS = "PatchOptions"
APPLY_TYPES = frozenset({"application/apply-patch+yaml"})

EXACT, NOT_OLDER_THAN = "Exact", "NotOlderThan"


class WriteOptions(Struct, frozen=True, kw_only=True):
    """The options of a create, update or patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool = False


_NO_OPTIONS = WriteOptions()


class ListOptions(Struct, frozen=True, kw_only=True):
    """The options of a list, a watch or a deletecollection."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout_seconds: int | None = None
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None


def write_options(context: RequestContext, kind: str) -> WriteOptions:
    """Return the options of a create, update or patch; `kind` is upstream's name for them."""
    applies = kind == _PATCH_OPTIONS and patch_media_type(context.body.media_type) in APPLY_TYPES
    if not context.query and not applies:
        return _NO_OPTIONS
    dry_run = context.query.get("dryRun", ())
    manager, validation = context.parameter("fieldManager"), context.parameter("fieldValidation")
    field_errors = [*_check_manager(manager), *check_dry_run(dry_run), *_check_validation(validation)]
    if kind == _PATCH_OPTIONS:
        field_errors = [*_check_patch(context, manager, applies=applies), *field_errors]
    refuse_options(kind, field_errors)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_manager=manager,
        field_validation=validation,
        force=bool(context.flag("force")),
    )


def patch_options(context: RequestContext) -> WriteOptions:
    """Return the options of a patch; if they are valid, record the patch for the audit log."""
    options = write_options(context, _PATCH_OPTIONS)
    if context.report.audited is not None:
        context.report.audited.set_patch(context.body.data)
    return options


def _check_patch(context: RequestContext, manager: str, *, applies: bool) -> Iterable[FieldError]:
    """Check that an apply has a manager, because it changes ownership, and that other patches do not force."""
    if applies:
        if not manager:
            yield errors.required(ROOT.child("fieldManager"), "is required for apply patch")
    elif "force" in context.query:
        yield errors.forbidden(ROOT.child("force"), "may not be specified for non-apply patch")


def list_options(context: RequestContext) -> ListOptions:
    """Return the options of a list, a watch or a deletecollection; only their types are checked."""
    timeout_seconds, limit = context.number("timeoutSeconds"), context.number("limit")
    return ListOptions(
        label_selector=context.parameter("labelSelector"),
        field_selector=context.parameter("fieldSelector"),
        resource_version=context.parameter("resourceVersion"),
        match=context.parameter("resourceVersionMatch"),
        limit=max(limit or 0, 0),
        continue_token=context.parameter("continue"),
        timeout_seconds=timeout_seconds,
        watch=context.verb == "watch",
        bookmarks=bool(context.flag("allowWatchBookmarks")),
        initial_events=context.flag("sendInitialEvents"),
    )


def check_list_options(context: RequestContext, options: ListOptions, *, watch_list: bool = True) -> None:
    """Refuse invalid options of a list, a watch or a deletecollection. `watch_list`: watches may request initial events."""
    # The old paths of watches are checked as lists, whose handler serves them.
    checked = _check_watch(options, watch_list=watch_list) if context.flag("watch") else _check_list(options)
    refuse_options("ListOptions", [*checked])


def refuse_options(kind: str, field_errors: Sequence[FieldError]) -> None:
    """Refuse invalid options; `kind` is upstream's name for them."""
    if field_errors:
        raise status.invalid(GroupKind(META, kind), "", field_errors)


def check_dry_run(dry_run: Sequence[str]) -> Iterable[FieldError]:
    if dry_run and set(dry_run) != {"All"}:
        yield errors.not_supported(ROOT.child("dryRun"), dry_run, ["All"])


def _check_manager(manager: str) -> Iterable[FieldError]:
    if len(manager.encode()) > MAX_FIELD_MANAGER:
        yield errors.too_long(ROOT.child("fieldManager"), MAX_FIELD_MANAGER)
    yield from check_printable(manager, ROOT.child("fieldManager"))


def _check_validation(validation: str) -> Iterable[FieldError]:
    if validation not in FIELD_VALIDATION:
        yield errors.not_supported(ROOT.child("fieldValidation"), validation, FIELD_VALIDATION)


_MATCH, _INITIAL = ROOT.child("resourceVersionMatch"), ROOT.child("sendInitialEvents")


def _check_list(options: ListOptions) -> Iterable[FieldError]:
    match, forbidden = options.match, errors.forbidden
    if match and not options.resource_version:
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match and options.continue_token:
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
    if match not in ("", EXACT, NOT_OLDER_THAN):
        yield errors.not_supported(_MATCH, match, [EXACT, NOT_OLDER_THAN, ""])
    if match == EXACT and options.resource_version == "0":
        yield forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if options.initial_events is not None:
        yield forbidden(_INITIAL, "sendInitialEvents is forbidden for list")


def _check_watch(options: ListOptions, *, watch_list: bool) -> Iterable[FieldError]:
    match, forbidden = options.match, errors.forbidden
    if options.initial_events is not None and match != NOT_OLDER_THAN:
        yield forbidden(
            _MATCH, f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
        )
    if options.initial_events is not None and not watch_list:
        problem = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
        yield forbidden(_INITIAL, problem)
    if match and options.initial_events is None:
        yield forbidden(
            _MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    if match not in ("", NOT_OLDER_THAN):
        yield errors.not_supported(_MATCH, match, [NOT_OLDER_THAN])
    # A watch from any version begins with the existing objects, as if it had requested them.
    begins = watch_list and options.initial_events is None and options.resource_version in ("", "0")
    if (match or begins) and options.continue_token:
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
