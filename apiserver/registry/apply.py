"""Server-side apply: a client sends the fields that it manages, and the server merges them with all other managers'."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson
from msgspec import Struct

from mockube.apimachinery import meta, status
from mockube.apimachinery.patch.errors import PatchError, UndecodablePatch
from mockube.apimachinery.status import ApiError, Cause, Conflict, Details
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.kind import UnconvertibleObject
from mockube.apiserver.patch.apply import Conflicts, FieldManager
from mockube.apiserver.patch.apply.field_manager import describe_object, format_kind
from mockube.apiserver.schema.decode import DecodeError
from mockube.apiserver.wire.go_json import type_name
from mockube.apiserver.wire.parse import CONVERTING, UnreadableBody, duplicate_keys, parse_applied

from . import metadata
from .body import as_warnings, decode_applied
from .metadata import field_manager
from .registry import Registry
from .request_context import Body, ObjectResult, RequestContext, WriteOptions, patch_options
from .update import guaranteed_update
from .write import Write

CHECKED_SINCE = "1.37"
"""The first minor that reads a patch before it looks for the object, so that its audit log has valid JSON."""


class Application(Struct, frozen=True, kw_only=True):
    """The configuration that a request applies."""

    manager: FieldManager
    config: Any
    duplicates: Sequence[str]
    """The errors of the YAML decoder about duplicate keys."""
    time: str | None
    name_in_errors: str
    """The name of the configuration in errors of decoding."""

    def check_type(self) -> None:
        """Refuse a configuration that is not an object, or not of the manager's kind."""
        self._check_object()
        try:
            self.manager.check_type(self.config)
        except UndecodablePatch as error:
            raise status.BadRequest(str(error)) from error

    def _check_object(self) -> None:
        if not isinstance(self.config, dict):
            go_type = "map[string]interface {}"
            problem = f"json: cannot unmarshal {type_name(self.config)} into Go value of type {go_type}"
            raise status.BadRequest(
                f"error decoding {self.name_in_errors}: error unmarshaling JSON: while decoding JSON: {problem}"
            )

    def merge_into(self, write: Write, live: Tree) -> Tree:
        """Merge the applied configuration into the live object, and return it decoded as its kind."""
        manager, options, context = self.manager, write.options, write.context
        self._check_object()
        # The result, which can share parts of the live object, gets defaults in place.
        live = orjson.loads(orjson.dumps(live))
        try:
            merged = manager.apply(
                live, self.config, manager=options.field_manager, time=self.time, force=options.force
            )
            write.patched = merged
            # Upstream neither decodes nor defaults an unchanged object again: its zero times stay null.
            is_unchanged = is_same(merged, live)
            tree = orjson.loads(orjson.dumps(merged)) if is_unchanged else self._decode(write, merged, live)
        except Conflicts as error:
            raise _conflict(error) from error
        except UndecodablePatch as error:
            raise status.BadRequest(str(error)) from error
        except PatchError as error:
            raise ApiError(str(error)) from error
        self._judge_duplicates(write)
        new_object: Tree = {"kind": manager.kind, "apiVersion": manager.versions.own} | tree
        if not is_unchanged:
            self._default(write, new_object)
        if not meta.uid(live):
            metadata.check_no_uid(new_object, context)
        metadata.match_namespace(new_object, context)
        metadata.match_name(new_object, context.name)
        return new_object

    def _default(self, write: Write, new_object: Tree) -> None:
        try:
            write.registry.scheme.rules.default(new_object["apiVersion"], new_object["kind"], new_object)
        except UnconvertibleObject as error:
            problem = f"failed to convert to unversioned ({describe_object(self.config)}): {error.problem}"
            raise ApiError(problem) from error

    def _judge_duplicates(self, write: Write) -> None:
        if self.duplicates and write.options.field_validation == "Strict":
            problem = f"{CONVERTING}{self.duplicates[0]}"
            raise status.BadRequest(f"error strict decoding {self.name_in_errors}: {problem}")
        write.context.report.warnings += as_warnings(self.duplicates)

    def _decode(self, write: Write, merged: Tree, live: Tree) -> Tree:
        """Return the merged object decoded as its kind. Its managers were encoded just before, and are not decoded again."""
        # A live object in the form in which the result is decoded shares its unchanged parts.
        before = live if write.conversion is None else None
        strict = write.options.field_validation != "Ignore"
        own_metadata = dict(merged["metadata"])
        managers = own_metadata.pop("managedFields", None)
        without_managers = merged | {"metadata": own_metadata}
        try:
            tree: Tree = decode_applied(write.registry, without_managers, strict=strict, before=before).tree
        except DecodeError as error:
            kind = format_kind(self.config)
            prefix = f"failed to convert new object ({describe_object(self.config)}) to proper version"
            problem = f"unable to convert unstructured object to {kind}: {error}"
            raise ApiError(f"{prefix}: {problem}") from error
        if managers is not None:
            metadata.ensure_metadata(tree)["managedFields"] = managers
        return tree


def read_application(
    registry: Registry, body: Body, options: WriteOptions, manager: FieldManager, *, time: str | None
) -> Application:
    try:
        parsed = parse_applied(body.data)
        duplicates = () if options.field_validation == "Ignore" else duplicate_keys(parsed)
    except UnreadableBody as error:
        if registry.is_before(CHECKED_SINCE):
            raise status.BadRequest(f"error decoding YAML: {error}") from error
        if body.data.lstrip().startswith(b"{"):  # upstream takes it for JSON until it is applied
            raise status.BadRequest(f"error decoding patch: {error}") from error
        problem = str(error).removeprefix(CONVERTING)
        raise status.BadRequest(f"error encoding patch: {problem}") from error
    return Application(
        manager=manager,
        config={} if parsed.tree is None else parsed.tree,
        duplicates=duplicates,
        time=time,
        name_in_errors="YAML" if registry.is_before(CHECKED_SINCE) else "patch",
    )


async def apply(registry: Registry, context: RequestContext) -> ObjectResult:
    options = patch_options(context)
    manager = field_manager(
        registry, context.resource, context.subresource.name if context.subresource else ""
    )
    time = format_time(registry.clock.now())
    reading = partial(read_application, registry, context.body, options, manager, time=time)
    application = await registry.begin(context, reading)

    def make(write: Write) -> Tree:
        tree = application.merge_into(write, dict(manager.empty))
        metadata.check_new(tree, context, dry_run=options.dry_run)
        return tree

    write = Write(
        registry=registry,
        context=context,
        options=options,
        change=application.merge_into,
        make=make if _may_create(registry, context) else None,
        manages_new=False,
    )
    return await guaranteed_update(write)


def _may_create(registry: Registry, context: RequestContext) -> bool:
    strategy = registry.scheme.strategy(context.resource)
    return (
        context.subresource is None
        or strategy.create_on_update
        or context.subresource.name in strategy.created_by_apply
    )


def is_same(merged: Tree, live: Tree) -> bool:
    """Return whether an object equals the live one, except for its managers."""
    new, old = dict(merged.get("metadata") or {}), dict(live.get("metadata") or {})
    for metadata_ in (new, old):
        metadata_.pop("managedFields", None)
    return new == old and merged | {"metadata": old} == live | {"metadata": old}


def _conflict(error: Conflicts) -> Conflict:
    causes = tuple(
        Cause(reason="FieldManagerConflict", message=conflict.message, field=conflict.field)
        for conflict in error.conflicts
    )
    return Conflict(str(error), Details(causes=causes))
