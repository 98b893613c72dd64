"""How a deletion is wanted: its options, from a body or a query, checked."""

from dataclasses import dataclass
from typing import Any

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.schema.decode import DecodeError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.body import decode_as
from mockube.apiserver.registry.call import Call
from mockube.apiserver.registry.options import META, boolean, integer
from mockube.apiserver.wire.parse import Unreadable, parse

ORPHAN, FOREGROUND, BACKGROUND = "Orphan", "Foreground", "Background"
FINALIZER_OF = {ORPHAN: "orphan", FOREGROUND: "foregroundDeletion"}
POLICIES = (FOREGROUND, BACKGROUND, ORPHAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    dry_run: bool = False
    grace: int | None = None
    policy: str = ""
    """Of `POLICIES`, or "" if the client left it to the resource."""
    uid: str | None = None
    version: str | None = None


def delete_options(backend: Backend, call: Call) -> DeleteOptions:
    return options_of(_from_body(backend, call) if call.body.data else _from_query(call))


def options_of(tree: Tree) -> DeleteOptions:
    """The options that a `DeleteOptions` object tells of, checked."""
    dry_run = tree.get("dryRun", [])
    wrong = [*_check(tree)]
    if dry_run and set(dry_run) != {"All"}:
        wrong.append(errors.not_supported(ROOT.child("dryRun"), dry_run, ["All"]))
    if wrong:
        raise status.invalid(GroupKind(META, "DeleteOptions"), "", wrong)
    grace = tree.get("gracePeriodSeconds")
    conditions = tree.get("preconditions") or {}
    return DeleteOptions(
        dry_run=bool(dry_run),
        grace=1 if grace is not None and grace < 0 else grace,
        policy=_policy(tree),
        uid=conditions.get("uid"),
        version=conditions.get("resourceVersion"),
    )


def _from_body(backend: Backend, call: Call) -> Tree:
    try:
        parsed = parse(call.body.data, call.body.media_type)
        if not isinstance(parsed.tree, dict):
            raise status.BadRequest("a DeleteOptions must be an object")
        typed = parsed.tree | {"kind": "DeleteOptions", "apiVersion": "v1"}
        tree: Tree = decode_as(backend, typed, text=parsed.text).tree
    except (Unreadable, DecodeError) as error:
        raise status.BadRequest(str(error)) from error
    return tree


def _from_query(call: Call) -> Tree:
    tree: dict[str, Any] = {"dryRun": [value for value in call.query.get("dryRun", ()) if value]}
    if grace := call.parameter("gracePeriodSeconds"):
        tree["gracePeriodSeconds"] = integer(grace)
    if policy := call.parameter("propagationPolicy"):
        tree["propagationPolicy"] = policy
    if orphan := call.parameter("orphanDependents"):
        tree["orphanDependents"] = boolean(orphan)
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
    return wrong


def _policy(tree: Tree) -> str:
    orphan = tree.get("orphanDependents")
    if orphan is not None:
        return ORPHAN if orphan else BACKGROUND
    policy: str = tree.get("propagationPolicy") or ""
    return policy


def check_preconditions(subject: GroupResource, name: str, options: DeleteOptions, metadata: Tree) -> None:
    """Refuse to delete another object than the one that was meant."""
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
