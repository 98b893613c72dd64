"""The annotations that make an object of a chart a hook, which helm creates at its own time. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mockube.lint.objects import LintObject

_HOOK: Final = "helm.sh/hook"
_WEIGHT: Final = "helm.sh/hook-weight"


def hooks_of(item: LintObject) -> Sequence[str]:
    value = _annotations(item).get(_HOOK, "")
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else []


def weight_of(item: LintObject) -> int:
    try:
        return int(_annotations(item).get(_WEIGHT, "0"))
    except (TypeError, ValueError):
        return 0


def _annotations(item: LintObject) -> Mapping[str, Any]:
    metadata = item.tree.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}
