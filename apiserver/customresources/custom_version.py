"""One version of a custom resource, with the functions on its objects that its definition determines."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import errors
from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import compile_pattern
from mockube.apimachinery.schema import builtin
from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.jsonschema.embedded import Coerce, coercer, embedded_checker
from mockube.apiserver.kinds.jsonschema.pruning import Prune, root_pruner
from mockube.apiserver.kinds.jsonschema.schema import Schema, has_rules, patterns, properties
from mockube.apiserver.kinds.jsonschema.validate import ValueChecker, checker
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.wire.table import Printer

from .defaulting import Fill, defaults_filler
from .list_types import lists_checker
from .rules import RulesCheck, rules_checker
from .scales import ScalePaths
from .types import kind_type, load_all

_BLOCKING_ERRORS: Final = frozenset(
    (
        ErrorType.NOT_SUPPORTED,
        ErrorType.REQUIRED,
        ErrorType.TOO_LONG,
        ErrorType.TOO_MANY,
        ErrorType.TYPE_INVALID,
    )
)
"""The types of errors after which upstream does not evaluate rules."""
_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


_MAX_ERROR_CHARACTERS: Final = 1 << 20
"""Characters in the details of all errors of an object; each error may list every value of a long `enum`."""


def _limit_errors(field_errors: Iterable[FieldError]) -> list[FieldError]:
    """Return the first errors, at least one; upstream returns all."""
    first_errors, length = [], 0
    for error in field_errors:
        first_errors.append(error)
        length += len(error.detail) + len(error.field)
        if length > _MAX_ERROR_CHARACTERS:
            break
    return first_errors


_Findings = tuple[Sequence[FieldError], Sequence[str]]
"""The errors of rules, and their warnings."""


def pack_schema(schema: Schema) -> bytes:
    """Return a schema as compressed JSON: the schemas of most definitions are seldom read."""
    return zlib.compress(orjson.dumps(schema), level=zlib.Z_BEST_SPEED)


class CustomVersion(Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A version of a custom resource.

    The functions that walk objects are built at their first use: most kinds are seldom used.
    """

    row: Resource
    packed_schema: bytes
    """See `pack_schema`."""
    strategy: Strategy
    printer: Printer
    metadata: Callable[[], SchemaType]
    """Returns the type of ObjectMeta."""
    served: bool = True
    """A version that is not served may still be the one that is stored."""
    scale: ScalePaths | None = None
    """The paths of its Scale's fields, if it has a Scale."""
    webhook: Mapping[str, Any] | None = None
    """The conversion by a webhook, if there is one."""
    preparation: int = 0
    """The cost of building the functions that walk objects, in the unit of `apiserver/customresources/cost.py`."""

    @property
    def definition_name(self) -> str:
        """The kind's name in OpenAPI: `com.example.v1.Website`. No built-in definition has the same."""
        group = ".".join(reversed(self.row.group.split(".")))
        name = f"{group}.{self.row.version}.{self.row.kind}"
        return f"{name}_v2" if builtin.load().has_definition(name) else name

    @property
    def schema(self) -> Schema:
        """Return a new copy of the parsed schema."""
        schema: Schema = orjson.loads(zlib.decompress(self.packed_schema))
        return schema

    @property
    def is_prepared(self) -> bool:
        return "_check" in vars(self)

    def prepare(self) -> None:
        """Build the functions that walk objects, perhaps in a thread. They are set at the end, without the lock of the
        cached properties, which all custom resources share.
        """
        if self.is_prepared:
            return
        schema = self.schema
        for pattern in patterns(schema):
            with suppress(RegexpError):
                compile_pattern(pattern)
        property_values = {
            "type": load_all(kind_type(self.definition_name, schema, self.metadata())),
            "prune": root_pruner(schema),
            "prune_applied": root_pruner(schema, drop_null=False),
            "_fill": defaults_filler(schema, self.metadata()),
            "_has_rules": has_rules(schema),
            "_check_rules": rules_checker(schema),
            "_check_lists": _lists_check(schema),
            "coerce": coercer(schema),
            "_check_embedded": _embedded_check(schema),
            "_check_status": checker(_status_schema(schema)),
            "_check": checker(schema),
        }
        vars(self).update(property_values)

    def prepare_as(self, other: "CustomVersion") -> None:
        """Use the functions of a version with the same schema, which another server of this process has built."""
        vars(self).update(vars(other))

    @cached_property
    def type(self) -> SchemaType:
        return kind_type(self.definition_name, self.schema, self.metadata())

    @cached_property
    def prune(self) -> Prune:
        return root_pruner(self.schema)

    @cached_property
    def prune_applied(self) -> Prune:
        """The pruner of applied objects. It keeps invalid nulls, so that validation refuses them."""
        return root_pruner(self.schema, drop_null=False)

    def default(self, tree: Tree) -> None:
        if self._fill is not None:
            self._fill(tree)

    def check(
        self,
        tree: Mapping[str, Any],
        old: Mapping[str, Any] | None = None,
        *,
        of_metadata: Sequence[FieldError] = (),
    ) -> Sequence[FieldError]:
        """Return the errors of an object or of an update, except those of its metadata."""
        of_values = self._check(tree, ROOT) if old is None else self._check(tree, ROOT, old)
        of_scale = self._check_scale(tree, only_status=False)
        field_errors = [*of_metadata, *of_values, *of_scale, *self._check_embedded(tree, ROOT)]
        return self._with_lists(field_errors, tree, old)

    def check_status(
        self, tree: Mapping[str, Any], old: Mapping[str, Any], *, of_metadata: Sequence[FieldError] = ()
    ) -> Sequence[FieldError]:
        """Return the errors of an object whose status was written, which upstream validates as a separate value."""
        of_values = self._check_status(tree["status"], ROOT, old.get("status")) if "status" in tree else ()
        of_scale = self._check_scale(tree, only_status=True)
        return self._with_lists([*of_metadata, *map(_in_status, of_values), *of_scale], tree, old)

    def _with_lists(
        self, field_errors: Sequence[FieldError], tree: Mapping[str, Any], old: Mapping[str, Any] | None
    ) -> Sequence[FieldError]:
        of_lists = [*self._check_lists(tree, ROOT)]
        if of_lists and old is not None and any(self._check_lists(old, ROOT)):
            of_lists = []  # ratcheting: an object that had duplicates may keep them
        bounded = _limit_errors([*field_errors, *of_lists])
        if not self._has_rules:
            return bounded
        if any(error.type in _BLOCKING_ERRORS for error in bounded):
            return [*bounded, errors.invalid(ROOT, None, _NOT_CHECKED)]
        return [*bounded, *self._rule_findings(tree, old)[0]]

    def rule_warnings(self, tree: Mapping[str, Any], old: Mapping[str, Any]) -> Sequence[str]:
        """Return warnings of rules that an update violates in parts that it does not change; they are no errors."""
        return self._rule_findings(tree, old)[1] if self._has_rules else ()

    def last_rule_warnings(self, tree: Mapping[str, Any], old: Mapping[str, Any]) -> Sequence[str]:
        """Return the `rule_warnings` of an update if its rules have just been evaluated; else none."""
        findings = self._cached_findings(tree, old)
        return findings[1] if findings is not None else ()

    def _rule_findings(self, tree: Mapping[str, Any], old: Mapping[str, Any] | None) -> _Findings:
        """Evaluate the rules; the results of the last evaluation are cached."""
        if self._check_rules is None:
            return (), ()
        findings = self._cached_findings(tree, old)
        if findings is not None:
            return findings
        findings = self._check_rules(tree, old)
        self._last_findings[:] = [(tree, old, findings)] if findings[1] else []
        return findings

    def _cached_findings(self, tree: Mapping[str, Any], old: Mapping[str, Any] | None) -> _Findings | None:
        for new_tree, old_tree, findings in self._last_findings:
            if new_tree is tree and old_tree is old:
                return findings
        return None

    @cached_property
    def _last_findings(self) -> list[tuple[Any, Any, _Findings]]:
        """The findings of the last object, which is checked for errors and then for warnings."""
        return []

    def _check_scale(self, tree: Mapping[str, Any], *, only_status: bool) -> Iterable[FieldError]:
        return () if self.scale is None else self.scale.check(tree, only_status=only_status)

    @cached_property
    def _fill(self) -> Fill | None:
        return defaults_filler(self.schema, self.metadata())

    @cached_property
    def _has_rules(self) -> bool:
        return has_rules(self.schema)

    @cached_property
    def _check_rules(self) -> RulesCheck | None:
        return rules_checker(self.schema)

    @cached_property
    def _check(self) -> ValueChecker:
        return checker(self.schema)

    @cached_property
    def _check_status(self) -> ValueChecker:
        return checker(_status_schema(self.schema))

    @cached_property
    def _check_lists(self) -> Check:
        return _lists_check(self.schema)

    @cached_property
    def _check_embedded(self) -> Check:
        return _embedded_check(self.schema)

    @cached_property
    def coerce(self) -> Coerce | None:
        """Decode the embedded objects; None if the schema has none."""
        return coercer(self.schema)


def _lists_check(schema: Schema) -> Check:
    return lists_checker(schema) or _no_errors


def _embedded_check(schema: Schema) -> Check:
    return embedded_checker(schema) or _no_errors


def _no_errors(_tree: Any, _path: Path) -> Iterable[FieldError]:
    return ()


def _status_schema(schema: Schema) -> Schema:
    return properties(schema).get("status", {})


def _in_status(error: FieldError) -> FieldError:
    return replace(error, field="status" if error.field == str(ROOT) else f"status.{error.field}")
