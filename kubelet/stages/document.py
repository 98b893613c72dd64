"""Parse a `Stage` of kwok, in each of its versions, into one record.

Pure. Unknown fields are refused: a stage with only some of its effects is worse than none.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Self

from msgspec import Struct

from mockube.kubelet.template.parser import Template, TemplateError, parse

from .query import Query, StageError, compile_query

API_VERSION: Final = "kwok.x-k8s.io/v1alpha1"
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
PatchKind = Literal["merge", "strategic", "json"]
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_PATCH_KINDS: Final = ("merge", "strategic", "json")
SUPPORTED_KINDS: Final = ("Node", "Pod")


class SelectorRequirement(Struct, frozen=True, kw_only=True):
    query: Query
    operator: Operator
    values: frozenset[str]


class ValueFrom(Struct, frozen=True, kw_only=True):
    """A number in the document, which the result of a query on the object overrides."""

    value: float | None
    query: Query | None


class PatchStep(Struct, frozen=True, kw_only=True):
    template: Template
    root: str
    subresource: str
    kind: PatchKind


class EventStep(Struct, frozen=True, kw_only=True):
    type: Literal["Normal", "Warning"]
    reason: str
    message: Template


class FinalizersStep(Struct, frozen=True, kw_only=True):
    add: tuple[str, ...]
    remove: tuple[str, ...]
    empty: bool


class DeleteStep(Struct, frozen=True):
    """Deletes the object; only events may follow."""


StageStep = PatchStep | EventStep | FinalizersStep | DeleteStep


class Stage(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    requirements: tuple[SelectorRequirement, ...]
    weight: ValueFrom
    delay: ValueFrom
    """The delay in milliseconds, like the jitter."""
    jitter: ValueFrom
    steps: tuple[StageStep, ...]
    immediate_next_stage: bool


class _Fields:
    """An object of the document; as a context, it refuses fields that were not taken."""

    def __init__(self, path: str, tree: Any) -> None:
        if not isinstance(tree, Mapping):
            raise StageError(f"{path}: must be an object")
        self._path = path
        self._remaining = dict(tree)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if self._remaining and failed is None:
            raise StageError(f"{self._path}.{next(iter(self._remaining))}: is not supported")

    def take(self, name: str, default: Any = None) -> Any:
        value = self._remaining.pop(name, None)
        return default if value is None else value

    def path(self, name: str) -> str:
        return f"{self._path}.{name}"

    def text(self, name: str, default: str = "") -> str:
        value = self.take(name, default)
        if not isinstance(value, str):
            raise StageError(f"{self.path(name)}: must be a string")
        return value

    def texts(self, name: str) -> Mapping[str, str]:
        """Take an object of strings, such as labels."""
        value = self.take(name, {})
        if not isinstance(value, dict) or not all(
            isinstance(text, str) for pair in value.items() for text in pair
        ):
            raise StageError(f"{self.path(name)}: must be an object of strings")
        return value

    def items(self, name: str) -> Sequence[Any]:
        value = self.take(name, [])
        if not isinstance(value, list):
            raise StageError(f"{self.path(name)}: must be a list")
        return value

    def child(self, name: str) -> "_Fields":
        return _Fields(self.path(name), self.take(name, {}))

    def one_of(self, name: str, allowed: Sequence[str], default: str = "") -> Any:
        value = self.take(name, default)
        if value not in allowed:
            raise StageError(
                f"{self.path(name)}: {value!r} is not supported: must be one of {', '.join(allowed)}"
            )
        return value


def stage_of(tree: Any) -> Stage | None:
    """Return the stage of a document; None if it has no selector, because it is never applied."""
    metadata = tree.get("metadata") if isinstance(tree, Mapping) else None
    name = str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""
    path = f"Stage {name or '?'}"
    with _Fields(path, tree) as document:
        document.one_of("apiVersion", [API_VERSION])
        document.one_of("kind", ["Stage"])
        document.take("metadata")
        document.take("status")
        with _Fields(f"{path}: spec", document.take("spec", {})) as spec:
            return _stage(name, spec)


def _stage(name: str, spec: _Fields) -> Stage | None:
    with spec.child("resourceRef") as reference:
        reference.one_of("apiGroup", ["v1"], "v1")
        kind = reference.one_of("kind", SUPPORTED_KINDS)
    selector = spec.take("selector")
    labels, annotations, requirements = _selector(spec.path("selector"), selector or {})
    with spec.child("delay") as delay_fields:
        delay = _value_from(delay_fields, "durationMilliseconds", "durationFrom")
        jitter = _value_from(delay_fields, "jitterDurationMilliseconds", "jitterDurationFrom")
    stage = Stage(
        name=name,
        kind=kind,
        labels=labels,
        annotations=annotations,
        requirements=requirements,
        weight=_value_from(spec, "weight", "weightFrom", default=0),
        delay=delay,
        jitter=jitter,
        steps=_steps(spec),
        immediate_next_stage=bool(spec.take("immediateNextStage")),
    )
    return stage if selector is not None else None


def _value_from(fields: _Fields, name: str, source: str, default: float | None = None) -> ValueFrom:
    value = fields.take(name, default)
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**63
    ):
        raise StageError(f"{fields.path(name)}: must be a number, and not negative")
    with fields.child(source) as origin:
        expression = origin.text("expressionFrom")
        with origin.child("jq") as jq_fields:
            expression = jq_fields.text("expression", expression)
    return ValueFrom(value=value, query=compile_query(expression) if expression else None)


# --- the selector


def _selector(
    field_path: str, tree: Any
) -> tuple[Mapping[str, str], Mapping[str, str], tuple[SelectorRequirement, ...]]:
    with _Fields(field_path, tree) as fields:
        labels, annotations = fields.texts("matchLabels"), fields.texts("matchAnnotations")
        path = fields.path("matchExpressions")
        expressions = fields.items("matchExpressions")
    requirements = [
        _requirement(f"{path}[{index}]", expression) for index, expression in enumerate(expressions)
    ]
    return labels, annotations, tuple(requirements)


def _requirement(field_path: str, tree: Any) -> SelectorRequirement:
    with _Fields(field_path, tree) as outer:
        jq_fields = outer.take("jq")
        with outer if jq_fields is None else _Fields(f"{field_path}.jq", jq_fields) as fields:
            operator = fields.one_of("operator", _OPERATORS)
            values = fields.items("values")
            query = compile_query(fields.text("key"))
    if bool(values) is not (operator in ("In", "NotIn")):
        problem = "must be empty" if values else "must not be empty"
        raise StageError(f"{field_path}.values: {problem} for {operator}")
    return SelectorRequirement(query=query, operator=operator, values=frozenset(map(str, values)))


# --- the steps


def _steps(spec: _Fields) -> tuple[StageStep, ...]:
    with spec.child("next") as fields:
        steps = _step(fields)
        other_steps = [step for step in steps if not isinstance(step, DeleteStep)]
        patches = fields.items("patches")
        for index, patch in enumerate(patches):
            with _Fields(fields.path(f"patches[{index}]"), patch) as entry:
                other_steps.append(_patch(entry))
        template = fields.text("statusTemplate")
        subresource = fields.text("statusSubresource", "status")
        _refuse(fields, "statusPatchAs")
        if template:
            template_path = fields.path("statusTemplate")
            parsed = _template(template_path, template)
            other_steps.append(
                PatchStep(template=parsed, root="status", subresource=subresource, kind="strategic")
            )
    all_steps: list[StageStep] = [*other_steps, *(step for step in steps if isinstance(step, DeleteStep))]
    path = spec.path("steps")
    for index, tree in enumerate(spec.items("steps")):
        with _Fields(f"{path}[{index}]", tree) as entry:
            all_steps += _step(entry)
            if patch := entry.take("patch"):
                with _Fields(f"{path}[{index}].patch", patch) as fields:
                    all_steps.append(_patch(fields))
    return tuple(all_steps)


def _step(fields: _Fields) -> list[StageStep]:
    """Return the parts of a step other than patches, in the order of their execution."""
    steps: list[StageStep] = []
    if event := fields.take("event"):
        with _Fields(fields.path("event"), event) as event_fields:
            kind = event_fields.one_of("type", ["Normal", "Warning"], "Normal")
            message = _template(event_fields.path("message"), event_fields.text("message"))
            steps.append(EventStep(type=kind, reason=event_fields.text("reason"), message=message))
    if finalizers := fields.take("finalizers"):
        with _Fields(fields.path("finalizers"), finalizers) as finalizer_fields:
            add, remove = _values(finalizer_fields, "add"), _values(finalizer_fields, "remove")
            empty = bool(finalizer_fields.take("empty"))
            steps.append(FinalizersStep(add=add, remove=remove, empty=empty))
    if fields.take("delete"):
        steps.append(DeleteStep())
    return steps


def _values(fields: _Fields, name: str) -> tuple[str, ...]:
    values = []
    for index, item in enumerate(fields.items(name)):
        with _Fields(fields.path(f"{name}[{index}]"), item) as entry:
            values.append(entry.text("value"))
    return tuple(values)


def _patch(fields: _Fields) -> PatchStep:
    _refuse(fields, "impersonation")
    return PatchStep(
        template=_template(fields.path("template"), fields.text("template")),
        root=fields.text("root"),
        subresource=fields.text("subresource"),
        kind=fields.one_of("type", _PATCH_KINDS, "strategic"),
    )


def _refuse(fields: _Fields, name: str) -> None:
    if fields.take(name) is not None:
        raise StageError(f"{fields.path(name)}: is not supported")


def _template(field_path: str, text: str) -> Template:
    try:
        return parse(text)
    except TemplateError as error:
        raise StageError(f"{field_path}: {error}") from None
