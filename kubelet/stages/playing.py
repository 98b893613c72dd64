"""Apply a stage to an object: render its steps into effects. Pure."""

from collections.abc import Sequence
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.kubelet.step_effects import DeleteObject, Effect, EmitEvent, PatchObject
from mockube.kubelet.template.expression import Environment, TemplateError

from .document import DeleteStep, EventStep, FinalizersStep, PatchStep, Stage, StageStep


def stage_effects(stage: Stage, obj: ReadOnlyTree, environment: Environment) -> tuple[Effect, ...]:
    """Return the effects in order; raise `TemplateError` if a template cannot be rendered."""
    effects: list[Effect] = []
    for step in stage.steps:
        is_gone = any(isinstance(effect, DeleteObject) for effect in effects)
        if not is_gone or isinstance(step, EventStep):
            effects += _effects(step, obj, environment)
    return tuple(effects)


def _effects(step: StageStep, obj: ReadOnlyTree, environment: Environment) -> Sequence[Effect]:
    match step:
        case PatchStep():
            return _write(step, obj, environment)
        case EventStep(type=kind, reason=reason, message=message):
            return [EmitEvent(kind, reason, message.render(obj, environment))]
        case FinalizersStep():
            return _change_finalizers(step, obj)
        case DeleteStep():
            return [DeleteObject()]


def _write(step: PatchStep, obj: ReadOnlyTree, environment: Environment) -> Sequence[Effect]:
    rendered = _load(step.template.render(obj, environment))
    if rendered is None:
        return []
    if step.kind == "json":
        if not isinstance(rendered, list) or not all(_is_operation(operation) for operation in rendered):
            raise TemplateError("the rendered template is not a list of JSON patch operations")
        operations = [
            {**operation, "path": _join_path(step.root, operation["path"])} for operation in rendered
        ]
        return [PatchObject(body=operations, kind="json", subresource=step.subresource)]
    body = {step.root: rendered} if step.root else rendered
    return [PatchObject(body=body, kind=step.kind, subresource=step.subresource)]


def _load(text: str) -> Any:
    try:
        return load(text.encode()).tree
    except YamlError as error:
        raise TemplateError(f"the rendered template is not valid YAML: {error}") from error


def _is_operation(tree: Any) -> bool:
    return isinstance(tree, dict) and isinstance(tree.get("path"), str)


def _join_path(root: str, path: str) -> str:
    return f"/{root}{path}" if root else path


def _change_finalizers(step: FinalizersStep, obj: ReadOnlyTree) -> Sequence[Effect]:
    present = list(meta.finalizers(obj))
    remaining = [] if step.empty else [name for name in present if name not in step.remove]
    desired = remaining + [name for name in step.add if name not in remaining]
    if desired == present:
        return []
    # The write fails if the object has changed, because it would remove finalizers that were added.
    version = {"resourceVersion": meta.resource_version(obj)}
    return [
        PatchObject(
            body={"metadata": {**version, "finalizers": desired or None}}, kind="merge", subresource=""
        )
    ]
