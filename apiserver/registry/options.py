"""The options of a query, parsed and validated: the options of writes and of lists.

Numbers that are no numbers are a bad request; values that are not allowed make an invalid `CreateOptions`,
`ListOptions` and so on, as upstream names them.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from mockube.apimachinery import errors, gotext, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.common.objectmeta import check_printable
from mockube.apiserver.registry.call import Call
from mockube.apiserver.wire.negotiation import parse_content_type

META = "meta.k8s.io"
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
MAX_FIELD_MANAGER = 128

PATCH_OPTIONS = "PatchOptions"
APPLY_TYPES = frozenset({"application/apply-patch+yaml"})

EXACT, NOT_OLDER_THAN = "Exact", "NotOlderThan"


class WriteOptions(Struct, frozen=True, kw_only=True):
    """Of a create, update or patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool = False


_NO_OPTIONS = WriteOptions()


class ListOptions(Struct, frozen=True, kw_only=True):
    """Of a list, a watch or a deletecollection."""

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


def write_options(call: Call, kind: str) -> WriteOptions:
    """The options of a create, update or patch; `kind` is upstream's name for them."""
    if not call.query and kind != PATCH_OPTIONS:
        return _NO_OPTIONS
    dry_run = call.query.get("dryRun", ())
    manager, validation = call.parameter("fieldManager"), call.parameter("fieldValidation")
    field_errors = [*_check_manager(manager), *check_dry_run(dry_run), *_check_validation(validation)]
    if kind == PATCH_OPTIONS:
        field_errors = [*_check_patch(call, manager), *field_errors]
    refuse(kind, field_errors)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_manager=manager,
        field_validation=validation,
        force=bool(flag(call, "force")),
    )


def _check_patch(call: Call, manager: str) -> Iterable[FieldError]:
    """An apply needs a manager, because it changes ownership; other patches cannot force."""
    if parse_content_type(call.body.media_type)[0] in APPLY_TYPES:
        if not manager:
            yield errors.required(ROOT.child("fieldManager"), "is required for apply patch")
    elif "force" in call.query:
        yield errors.forbidden(ROOT.child("force"), "may not be specified for non-apply patch")


def list_options(call: Call, *, watch_list: bool = True) -> ListOptions:
    """`watch_list`: watches may begin with what there is."""
    watch = call.verb == "watch"
    options = ListOptions(
        label_selector=call.parameter("labelSelector"),
        field_selector=call.parameter("fieldSelector"),
        resource_version=call.parameter("resourceVersion"),
        match=call.parameter("resourceVersionMatch"),
        limit=max(number(call, "limit") or 0, 0),
        continue_token=call.parameter("continue"),
        timeout_seconds=number(call, "timeoutSeconds"),
        watch=watch,
        bookmarks=bool(flag(call, "allowWatchBookmarks")),
        initial_events=flag(call, "sendInitialEvents"),
    )
    # The old paths of watches are checked as lists, whose handler serves them.
    checked = _check_watch(options, watch_list=watch_list) if flag(call, "watch") else _check_list(options)
    refuse("ListOptions", [*checked])
    return options


def number(call: Call, name: str) -> int | None:
    """A parameter as an int64 as Go reads it, for which "" is none; None if it was not given."""
    if name not in call.query:
        return None
    try:
        return gotext.parse_int(call.parameter(name))
    except gotext.NumberError as error:
        raise status.BadRequest(str(error)) from error


def flag(call: Call, name: str) -> bool | None:
    """A parameter as upstream reads a flag: everything but "0" and "false" is yes; None if it was not given."""
    return call.parameter(name).lower() not in ("0", "false") if name in call.query else None


def refuse(kind: str, field_errors: Sequence[FieldError]) -> None:
    """Refuse options, by upstream's name for them, if something is wrong."""
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
