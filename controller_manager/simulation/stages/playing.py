"""What a stage does to an object: its steps, rendered into effects.

Pure.
"""

from collections.abc import Sequence
from typing import Any

import yaml

from apimachinery import meta
from controller_manager.runtime.resource import Tree
from controller_manager.simulation.effects import Effect, Remove, Tell, Write
from controller_manager.simulation.stages.document import (
    DeleteStep,
    EventStep,
    FinalizersStep,
    PatchStep,
    Stage,
    StageStep,
)
from controller_manager.simulation.template.expression import Environment, TemplateError


class _Loader(yaml.CSafeLoader):
    """YAML as JSON can say it: what looks like a time stays a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def play(stage: Stage, obj: Tree, environment: Environment) -> tuple[Effect, ...]:
    """The effects in their order, or `TemplateError`."""
    effects: list[Effect] = []
    for step in stage.steps:
        is_gone = any(isinstance(effect, Remove) for effect in effects)
        if not is_gone or isinstance(step, EventStep):
            effects += _effects(step, obj, environment)
    return tuple(effects)


def _effects(step: StageStep, obj: Tree, environment: Environment) -> Sequence[Effect]:
    match step:
        case PatchStep():
            return _write(step, obj, environment)
        case EventStep(type=kind, reason=reason, message=message):
            return [Tell(kind, reason, message.render(obj, environment))]
        case FinalizersStep():
            return _change_finalizers(step, obj)
        case DeleteStep():
            return [Remove()]


def _write(step: PatchStep, obj: Tree, environment: Environment) -> Sequence[Effect]:
    rendered = _load(step.template.render(obj, environment))
    if rendered is None:
        return []
    if step.kind == "json":
        operations = [{**operation, "path": _under(step.root, operation["path"])} for operation in rendered]
        return [Write(body=operations, kind="json", subresource=step.subresource)]
    body = {step.root: rendered} if step.root else rendered
    return [Write(body=body, kind=step.kind, subresource=step.subresource)]


def _load(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - it is a safe loader that resolves less
    except yaml.YAMLError as error:
        raise TemplateError(f"what was rendered is no YAML: {error}") from error


def _under(root: str, path: str) -> str:
    return f"/{root}{path}" if root else path


def _change_finalizers(step: FinalizersStep, obj: Tree) -> Sequence[Effect]:
    present = list(meta.finalizers(obj))
    kept = [] if step.empty else [name for name in present if name not in step.remove]
    wanted = kept + [name for name in step.add if name not in kept]
    if wanted == present:
        return []
    # Another version may have other finalizers, which would be lost.
    version = {"resourceVersion": meta.resource_version(obj)}
    return [Write(body={"metadata": {**version, "finalizers": wanted or None}}, kind="merge", subresource="")]
