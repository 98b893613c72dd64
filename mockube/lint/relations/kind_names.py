"""Kinds of Kubernetes that a reference misspells: servers and controllers compare kinds letter by letter. Pure."""

from collections.abc import Sequence
from typing import Final

from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.component_base.suggestions import nearest

_MIN_SIMILARITY: Final = 0.8
"""Custom kinds, such as DeploymentConfig, have less similar names."""


def kind_problem(kind: str, groups: Sequence[str]) -> str:
    """Return what is wrong with a kind that a reference names; "" if a group has it, or none has a similar one."""
    known = {each.resource.kind: each.resource.name for each in NEWEST.all if each.resource.group in groups}
    if not kind or kind in known:
        return ""
    spellings = {text: written for written, resource in known.items() for text in (written.lower(), resource)}
    if written := spellings.get(kind.lower()):
        return f'"{kind}" is not a kind: it is written "{written}"'
    candidate = nearest(kind, known, min_similarity=_MIN_SIMILARITY)
    return f'"{kind}" is not a kind: did you mean "{candidate}"?' if candidate else ""
