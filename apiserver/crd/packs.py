"""The kinds of packs, compiled as their definitions say."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from apimachinery.packs.definitions import definitions
from apimachinery.schema.model import Schemas
from apiserver.crd.compile import compile_definition
from apiserver.crd.custom import Custom
from apiserver.crd.faces import OBJECT_META
from apiserver.wire import yaml_codec


def packed(packs: Iterable[str], schemas: Schemas) -> Iterator[Sequence[Custom]]:
    """Each resource of these packs, in all its versions."""
    metadata = partial(schemas.definition, OBJECT_META)
    for pack in packs:
        for text in definitions(pack):
            yield compile_definition(yaml_codec.load(text).tree, metadata)
