"""Fields that upstream stores as the bytes that were sent, such as the data of a ControllerRevision.

They are compared as bytes, so the format of the request matters: a JSON body is stored as it is, a JSON patch is
applied to text without blanks, and all other formats are encoded again with sorted keys.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
import orjson

from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.gonumbers import rewritten
from mockube.apimachinery.patch import json_patch, merge, written
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree, sorted_keys
from mockube.apiserver.kinds.common.checks import IMMUTABLE
from mockube.apiserver.registry.call import APPLY_TYPES, Call
from mockube.apiserver.storage.stored import canonical
from mockube.apiserver.wire.negotiation import Format, parse_content_type

_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OF_SERVER: Final = ("managedFields", "resourceVersion")
_PATCHES: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "application/json-patch+json": json_patch.apply,
    "application/merge-patch+json": merge.apply,
}


def stored_text(value: bytes, name: str) -> bytes:
    """The text of a field of a stored object; "" if it has none."""
    return bytes(_MEMBERS.decode(value).get(name, b""))


def sent_text(call: Call, name: str, tree: Tree) -> bytes:
    """The text of a field as upstream has it before it is stored."""
    if tree.get(name) is None:
        return b""
    media_type = parse_content_type(call.body.media_type)[0] if call.body.media_type else Format.JSON
    if (
        media_type in APPLY_TYPES
        and call.live is not None
        and _without_managers(tree) == _without_managers(call.live.tree())
    ):
        return stored_text(call.live.value, name)  # nothing but managers was applied
    carry_out = _PATCHES.get(media_type)
    if carry_out is not None and call.live is not None:
        patched = carry_out(written.loads(call.live.text), written.loads(call.body.data))
        text = written.dumps(patched.get(name)).encode()
    elif media_type == Format.JSON:
        text = bytes(_MEMBERS.decode(call.body.data).get(name, b""))
    else:
        text = written.dumps(sorted_keys(rewritten(tree[name]))).encode()
    # What admission has changed is encoded again.
    return text if text and orjson.loads(text) == tree[name] else orjson.dumps(tree[name])


def _without_managers(tree: Tree) -> Tree:
    metadata = {name: value for name, value in tree["metadata"].items() if name not in _OF_SERVER}
    return tree | {"metadata": metadata}


def check_unchanged(call: Call, names: tuple[str, ...], new: Tree) -> Iterator[FieldError]:
    """Refuse other bytes than those that are stored."""
    for name in names:
        text = sent_text(call, name, new)
        if call.live is not None and text != stored_text(call.live.value, name):
            value = written.dumps(written.loads(text)) if text else "null"
            detail = f"{value}: {IMMUTABLE}"
            yield FieldError(type=ErrorType.INVALID, field=str(ROOT.child(name)), detail=detail)


def canonical_with(tree: Tree, texts: Mapping[str, bytes]) -> bytes:
    """The canonical text of an object, with fields as they were sent."""
    fragments = {name: orjson.Fragment(text) for name, text in texts.items() if text}
    return canonical({name: fragments.get(name, value) for name, value in tree.items()})
