"""The kinds of packs, compiled as their definitions say: read once in a process, since nothing changes them."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial

from apimachinery.packs.definitions import definitions
from apimachinery.schema.model import Schemas
from apiserver.crd.compile import compile_definition
from apiserver.crd.custom import Custom
from apiserver.crd.faces import OBJECT_META
from apiserver.storage.stored import Tree
from apiserver.wire import yaml_codec


def packed(packs: Iterable[str], schemas: Schemas) -> Iterator[Sequence[Custom]]:
    """Each resource of these packs, in all its versions."""
    for pack in packs:
        yield from _compiled(pack, schemas)


@cache
def packed_trees(pack: str) -> Sequence[Tree]:
    """The definitions themselves."""
    return [yaml_codec.load(text).tree for text in definitions(pack)]


@cache
def _compiled(pack: str, schemas: Schemas) -> Sequence[Sequence[Custom]]:
    metadata = partial(schemas.definition, OBJECT_META)
    return [compile_definition(tree, metadata) for tree in packed_trees(pack)]
