"""What pods have in common that are made of one template: the text of their spec, by which to remember what was found.

Most pods are as the one before, but for their metadata. Of each, admission makes up the name of one volume, in which
the pod has its token: it tells pods apart of which all else is the same, so it is written here in one way.
"""

import re
from collections.abc import Callable
from typing import Final, TypeVar

import orjson

from apimachinery.remembered import remembered
from apiserver.validation.rules import Tree

Answer = TypeVar("Answer")

_SPECS: Final = 40
_LONGEST: Final = 16 * 1024
"""Bytes of a spec that is remembered."""

_TOKEN: Final = re.compile(rb"kube-api-access-[a-z0-9]{5}")
_ANY_TOKEN: Final = b"kube-api-access-00000"


def likeness(spec: Tree) -> bytes:
    """The spec's JSON with another name for the volume of its token: as long, as good, and used nowhere else.

    So whatever is right in the one is right in the other, and two that have one likeness differ in that name only.
    """
    text = orjson.dumps(spec)
    named = _TOKEN.search(text)
    if named is None or _ANY_TOKEN in text:
        return text
    return text.replace(named[0], _ANY_TOKEN)


def remembered_by_likeness(question: Callable[[Tree], Answer]) -> Callable[[bytes], Answer]:
    """Answers what only depends on a spec, for its likeness. The question is given a tree that is nobody else's."""
    return remembered(_SPECS, longest=_LONGEST)(lambda text: question(orjson.loads(text)))
