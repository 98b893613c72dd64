"""Parts of objects that are of built-in types, although the schema around them says nothing of it: templates."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from apiserver.rest.backend import Backend
from apiserver.rest.body import decode_as
from apiserver.storage.stored import Tree

View: TypeAlias = Mapping[str, Any]


def _read(backend: Backend, kind: tuple[str, str], tree: Tree) -> Tree:
    """As Go would read and write it; `DecodeError` if it is not of that kind."""
    decoded: Tree = decode_as(backend, tree, kind).tree
    return decoded


def _filled(backend: Backend, kind: tuple[str, str], tree: Tree) -> Tree:
    made = {"apiVersion": kind[0], "kind": kind[1]} | _read(backend, kind, tree)
    backend.rules.default(*kind, made)
    return made


def pod_template(backend: Backend, given: Any) -> Tree:
    """A pod template with the defaults of pods."""
    made: Tree = _filled(backend, ("v1", "PodTemplate"), {"template": given})["template"]
    return made


def claims(backend: Backend, given: Iterable[View]) -> list[Tree]:
    """Claims with their defaults; they need not say that they are claims."""
    return [_claim(backend, one) for one in given]


def _claim(backend: Backend, given: View) -> Tree:
    made = _filled(backend, ("v1", "PersistentVolumeClaim"), dict(given))
    return {name: value for name, value in made.items() if name in given or name not in _TYPE_META}


_TYPE_META: Final = frozenset({"apiVersion", "kind"})


def fill_templates(backend: Backend, spec: Tree, old: View | None) -> None:
    """The templates of pods and claims in a workload's spec, unless they are as they were."""
    if "template" in spec and (old is None or spec["template"] != old["template"]):
        spec["template"] = pod_template(backend, spec["template"])
        if "volumeClaimTemplates" in spec:
            spec["volumeClaimTemplates"] = claims(backend, spec["volumeClaimTemplates"])
