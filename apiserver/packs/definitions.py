"""The CustomResourceDefinitions of packs, with all versions."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.kinds.apiextensions import custom_resource_definition
from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.kind_rules import check_create
from mockube.component_base.packs import LABEL, PackError, load_pack, own_pack_names, parts_of

_ROW: Final = custom_resource_definition.KIND.resource


@cache
def definition_trees(pack: str) -> Sequence[Tree]:
    """Return the CustomResourceDefinitions of a pack with all versions; a process reads them once."""
    return parts_of(pack, "definitions", lambda: map(_complete, _trees(pack)))


def pack_resources(packs: Iterable[str]) -> frozenset[GroupResource]:
    """Return the resources that packs define."""
    specs = (tree["spec"] for pack in packs for tree in definition_trees(pack))
    return frozenset(GroupResource(spec["group"], spec["names"]["plural"]) for spec in specs)


def _trees(pack: str) -> Iterator[Tree]:
    """Yield the definitions of a pack. Those of mockube's own packs are valid, as its tests check."""
    found = load_pack(pack)
    for text in found.definitions():
        tree = load(text.encode() if isinstance(text, str) else text).tree
        definition = _labelled(found.add_versions(tree), pack)
        if pack not in own_pack_names():
            _check(pack, definition)
        yield definition


def _labelled(definition: Any, pack: str) -> Any:
    """Return a definition with the label by which a manager finds the packs of its server. `_check` reports an invalid one."""
    if not isinstance(definition, dict) or not isinstance(definition.get("metadata"), dict):
        return definition
    metadata = definition["metadata"]
    labels = metadata.get("labels") or {}
    return {**definition, "metadata": {**metadata, "labels": {**labels, LABEL: pack}}}


def _complete(definition: Tree) -> Tree:
    """Return a definition with the names that the server sets if they are missing."""
    names: Tree = dict(definition["spec"]["names"])
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec: Tree = {**definition["spec"], "names": names}
    spec.setdefault("conversion", {"strategy": "None"})
    return {**definition, "spec": spec}


def _check(pack: str, definition: Any) -> None:
    """Raise PackError unless the tree is a definition that a server accepts."""
    if not isinstance(definition, dict) or definition.get("apiVersion") != _ROW.api_version:
        raise PackError(f'pack "{pack}": its definitions contain an object that is no {_ROW.kind}')
    spec = definition["spec"]
    if any(spec["group"] == group.name for group in NEWEST.groups):
        kind, group_name = spec["names"]["kind"], spec["group"]
        raise PackError(
            f'pack "{pack}": {kind} cannot be defined, because {group_name} is a group of Kubernetes'
        )
    complete = _complete(definition)
    stored = [version["name"] for version in complete["spec"]["versions"] if version.get("storage")]
    problems = [*map(str, check_create(_ROW, complete | {"status": {"storedVersions": stored[:1]}}))]
    if problems:
        raise PackError(
            f'pack "{pack}": the definition {definition["metadata"]["name"]} is invalid: {"; ".join(problems)}'
        )
