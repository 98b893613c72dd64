"""The definitions of packs, which `kubectl get crds` shows like those that users bring."""

from collections.abc import Iterable, Sequence

from apimachinery.packs.definitions import definitions
from apiserver.bootstrap.wanted import Wanted
from apiserver.wire import yaml_codec

DEFINITIONS = ("apiextensions.k8s.io", "v1", "customresourcedefinitions")


def packed_definitions(packs: Iterable[str]) -> Sequence[Wanted]:
    trees = [yaml_codec.load(text).tree for pack in packs for text in definitions(pack)]
    return [
        Wanted(resource=DEFINITIONS, name=tree["metadata"]["name"], content={"spec": tree["spec"]})
        for tree in trees
    ]
