"""The options of a deletion, from a body or a query, and their validation."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.schema.decode import DecodeError
from mockube.apiserver.wire.parse import ParsedObject, UnreadableBody, parse

from . import body
from .registry import Registry
from .request_context import META, RequestContext, check_dry_run, refuse_options

ORPHAN, FOREGROUND, BACKGROUND = "Orphan", "Foreground", "Background"
FINALIZER_OF = {ORPHAN: "orphan", FOREGROUND: "foregroundDeletion"}
POLICIES = (FOREGROUND, BACKGROUND, ORPHAN)
KIND = "DeleteOptions"
ONLY_UNREADABLE = "ignoreStoreReadErrorWithClusterBreakingPotential"
_UNREADABLE_PATH = ROOT.child(ONLY_UNREADABLE)
_INTERNAL = f"{META}/__internal"
"""The version of the options that upstream's audit log shows."""

_UNVERSIONED = (
    "Status",
    "APIVersions",
    "APIGroup",
    "APIGroupList",
    "APIResourceList",
    "CreateOptions",
    "UpdateOptions",
)
_OTHER_KINDS = {
    "v1": _UNVERSIONED,
    f"{META}/v1": (
        *_UNVERSIONED, "GetOptions", "ListOptions", "PatchOptions", "WatchEvent", "Table", "TableOptions",
        "PartialObjectMetadata", "PartialObjectMetadataList",
    ),
}  # fmt: skip
"""Other kinds that upstream's decoder of options accepts, by apiVersion."""


class DeleteOptions(Struct, frozen=True, kw_only=True):
    dry_run: bool = False
    grace: int | None = None
    policy: str = ""
    """One of `POLICIES`, or "" for the default of the resource."""
    uid: str | None = None
    version: str | None = None
    cascading: bool = False
    """Whether the client set the deprecated orphanDependents to false."""
    only_unreadable: bool = False
    """Whether only an object that cannot be read is deleted."""
    problems: Sequence[FieldError] = ()
    """What is wrong with the options, if they are not validated yet."""


def delete_options(registry: Registry, context: RequestContext) -> DeleteOptions:
    tree = _from_body(registry, context) if context.body.data else _from_query(context)
    if ONLY_UNREADABLE in tree and not registry.gates.is_on("AllowUnsafeMalformedObjectDeletion"):
        tree = {name: value for name, value in tree.items() if name != ONLY_UNREADABLE}
    return options_of(tree)


def options_of(tree: Tree) -> DeleteOptions:
    """Return the validated options of a `DeleteOptions` object."""
    options = unchecked_options(tree)
    refuse_options(KIND, options.problems)
    return options


def unchecked_options(tree: Tree) -> DeleteOptions:
    """Return the options of a `DeleteOptions` object, with their problems."""
    dry_run = tree.get("dryRun") or ()
    grace = tree.get("gracePeriodSeconds")
    conditions = tree.get("preconditions") or {}
    return DeleteOptions(
        dry_run=bool(dry_run),
        grace=1 if grace is not None and grace < 0 else grace,
        policy=_policy(tree),
        uid=conditions.get("uid"),
        version=conditions.get("resourceVersion"),
        cascading=tree.get("orphanDependents") is False,
        only_unreadable=bool(tree.get(ONLY_UNREADABLE)),
        problems=(*_check(tree), *check_dry_run(dry_run)),
    )


def _from_body(registry: Registry, context: RequestContext) -> Tree:
    try:
        parsed = parse(context.body.data, context.body.media_type)
        sent = {} if parsed.tree is None else parsed.tree
        _check_kind(sent, parsed)
        typed = sent | {"kind": KIND, "apiVersion": "v1"}
        tree: Tree = body.decode_as(registry, typed, text=parsed.text).tree
    except UnreadableBody as error:
        raise status.BadRequest(body.undecodable(error)) from error
    except DecodeError as error:
        raise status.BadRequest(str(error)) from error
    if context.report.audited is not None:
        context.report.audited.set_object(tree | {"kind": KIND, "apiVersion": _INTERNAL})
    return tree


def _check_kind(tree: Any, parsed: ParsedObject) -> None:
    """Refuse options of another kind, or of another group without a version; any group with a version is allowed."""
    api_version, kind = body.type_of(tree)
    if api_version.endswith("/") and api_version not in ("/", f"{META}/"):
        raise status.BadRequest(body.missing_version(parsed))
    if kind in ("", KIND):
        return
    version = api_version or f"{META}/v1"
    if kind in _OTHER_KINDS.get(version, ()):
        raise status.BadRequest(f"converting (v1.{kind}) to (v1.{KIND}): unknown conversion")
    raise status.BadRequest(body.not_registered(version, kind))


def _from_query(context: RequestContext) -> Tree:
    tree: dict[str, Any] = {"dryRun": context.query.get("dryRun", ())}
    tree["gracePeriodSeconds"] = context.number("gracePeriodSeconds")
    tree["orphanDependents"] = context.flag("orphanDependents")
    tree[ONLY_UNREADABLE] = context.flag(ONLY_UNREADABLE)
    if "propagationPolicy" in context.query:
        tree["propagationPolicy"] = context.parameter("propagationPolicy")
    if "uid" in context.query or "resourceVersion" in context.query:
        preconditions = {name: context.parameter(name) for name in ("uid", "resourceVersion")}
        tree["preconditions"] = {name: value for name, value in preconditions.items() if value}
    return tree


def _check(tree: Tree) -> list[FieldError]:
    policy, orphan = tree.get("propagationPolicy"), tree.get("orphanDependents")
    path = ROOT.child("propagationPolicy")
    wrong = []
    if policy is not None and orphan is not None:
        wrong.append(
            errors.invalid(path, policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    if policy is not None and policy not in POLICIES:
        wrong.append(errors.not_supported(path, policy, [*POLICIES, "nil"]))
    if tree.get(ONLY_UNREADABLE):
        wrong += (
            errors.invalid(_UNREADABLE_PATH, value=True, detail=f"cannot be set together with .{name}")
            for name in ("propagationPolicy", "orphanDependents", "gracePeriodSeconds", "preconditions")
            if tree.get(name) is not None
        )
    return wrong


def refuse_for_collection(options: DeleteOptions) -> None:
    """Refuse options that the deletion of a collection does not have."""
    if options.only_unreadable:
        problem = "is not allowed with DELETECOLLECTION, try again after removing the option"
        refuse_options(KIND, [errors.invalid(_UNREADABLE_PATH, value=True, detail=problem)])


def _policy(tree: Tree) -> str:
    orphan = tree.get("orphanDependents")
    if orphan is not None:
        return ORPHAN if orphan else BACKGROUND
    policy: str = tree.get("propagationPolicy") or ""
    return policy


def check_preconditions(subject: GroupResource, name: str, options: DeleteOptions, metadata: Tree) -> None:
    """Refuse to delete an object that does not match the preconditions."""
    if options.uid is not None and options.uid != metadata["uid"]:
        problem = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict(subject, name, problem)
    if options.version is not None and options.version != metadata["resourceVersion"]:
        problem = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in "
            f"record ({metadata['resourceVersion']}). The object might have been modified"
        )
        raise status.conflict(subject, name, problem)


def check_own_preconditions(
    subject: GroupResource, name: str, options: DeleteOptions, metadata: Tree, *, in_lower_case: bool
) -> None:
    """Check the preconditions for a resource with messages of its own."""
    begin = "precondition" if in_lower_case else "Precondition"
    for field, expected, actual in (
        ("UID", options.uid, metadata["uid"]),
        ("ResourceVersion", options.version, metadata["resourceVersion"]),
    ):
        if expected is not None and expected != actual:
            problem = f"{begin} failed: {field} in precondition: {expected}, {field} in object meta: {actual}"
            raise status.conflict(subject, name, problem)
