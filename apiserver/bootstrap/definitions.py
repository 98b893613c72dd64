"""The definitions of packs, which `kubectl get crds` shows like those that users bring."""

from collections.abc import Iterable, Sequence

from apiserver.bootstrap.wanted import Wanted
from apiserver.crd.packs import packed_trees

DEFINITIONS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def packed_definitions(packs: Iterable[str]) -> Sequence[Wanted]:
    return [
        Wanted(resource=DEFINITIONS, name=tree["metadata"]["name"], content={"spec": tree["spec"]})
        for pack in packs
        for tree in packed_trees(pack)
    ]
