"""What a query may ask of a verb, read and checked: the options of writes and of lists.

Numbers that are no numbers are a bad request; values that are not allowed make an invalid `CreateOptions`,
`ListOptions` and so on, as upstream names them.
"""

from collections.abc import Iterable

from msgspec import Struct

from mockube.apimachinery import errors, gotext, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.registry.call import Call

META = "meta.k8s.io"
FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
MAX_FIELD_MANAGER = 128

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
    if not call.query:
        return _NO_OPTIONS
    dry_run = [value for value in call.query.get("dryRun", ()) if value]
    manager, validation = call.parameter("fieldManager"), call.parameter("fieldValidation")
    wrong = [*_check_dry_run(dry_run), *_check_manager(manager), *_check_validation(validation)]
    _refuse(kind, wrong)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_manager=manager,
        field_validation=validation,
        force=boolean(call.parameter("force")),
    )


def check_apply(options: WriteOptions) -> None:
    """An apply needs a manager, for it is all about who manages what."""
    if not options.field_manager:
        _refuse("PatchOptions", [errors.required(ROOT.child("fieldManager"), "is required for apply patch")])


def check_not_apply(call: Call) -> None:
    if call.parameter("force"):
        _refuse(
            "PatchOptions",
            [errors.forbidden(ROOT.child("force"), "may not be specified for non-apply patch")],
        )


def list_options(call: Call, *, watch_list: bool = True) -> ListOptions:
    """`watch_list`: watches may begin with what there is."""
    watch = call.verb == "watch"
    initial = call.parameter("sendInitialEvents")
    timeout = call.parameter("timeoutSeconds")
    options = ListOptions(
        label_selector=call.parameter("labelSelector"),
        field_selector=call.parameter("fieldSelector"),
        resource_version=call.parameter("resourceVersion"),
        match=call.parameter("resourceVersionMatch"),
        limit=max(integer(call.parameter("limit")), 0),
        continue_token=call.parameter("continue"),
        timeout_seconds=integer(timeout) if timeout else None,
        watch=watch,
        bookmarks=boolean(call.parameter("allowWatchBookmarks")),
        initial_events=boolean(initial) if initial else None,
    )
    _refuse("ListOptions", _check_match(options, watch_list=watch_list))
    return options


def integer(text: str) -> int:
    """An int64 as Go reads it; "" is 0."""
    if not text:
        return 0
    try:
        return gotext.parse_int(text)
    except gotext.NumberError as error:
        raise status.BadRequest(str(error)) from error


def boolean(text: str) -> bool:
    """As upstream reads a query's flag: everything but nothing, "0" and "false" is yes."""
    return text.lower() not in ("", "0", "false")


def _refuse(kind: str, wrong: list[FieldError]) -> None:
    if wrong:
        raise status.invalid(GroupKind(META, kind), "", wrong)


def _check_dry_run(dry_run: list[str]) -> Iterable[FieldError]:
    if dry_run and set(dry_run) != {"All"}:
        yield errors.not_supported(ROOT.child("dryRun"), dry_run, ["All"])


def _check_manager(manager: str) -> Iterable[FieldError]:
    if len(manager.encode()) > MAX_FIELD_MANAGER:
        yield errors.too_long(ROOT.child("fieldManager"), MAX_FIELD_MANAGER)
    for position, character in enumerate(manager):
        if not character.isprintable():
            detail = f"should only contain printable characters, got {gotext.quote(character)} at position {position}"
            yield errors.invalid(ROOT.child("fieldManager"), manager, detail)
            return


def _check_validation(validation: str) -> Iterable[FieldError]:
    if validation not in FIELD_VALIDATION:
        yield errors.not_supported(ROOT.child("fieldValidation"), validation, FIELD_VALIDATION)


def _check_match(options: ListOptions, *, watch_list: bool) -> list[FieldError]:
    """What may go with resourceVersionMatch and sendInitialEvents."""
    return list(_check_watch(options, watch_list=watch_list) if options.watch else _check_list(options))


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
    if match and options.continue_token:
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
