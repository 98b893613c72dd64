"""The definitions of packs, which `kubectl get crds` shows like those that users bring."""

from collections.abc import Iterable, Sequence

from mockube.apiserver.bootstrap.required_object import RequiredObject
from mockube.apiserver.packs.registry import definition_trees

DEFINITIONS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def packed_definitions(packs: Iterable[str]) -> Sequence[RequiredObject]:
    return [
        RequiredObject(resource=DEFINITIONS, name=tree["metadata"]["name"], content={"spec": tree["spec"]})
        for pack in packs
        for tree in definition_trees(pack)
    ]
