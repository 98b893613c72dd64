"""Values of a store as canonical text, whoever wrote them.

This server writes canonical JSON, and so does kube-apiserver where it stores JSON. What a kube-apiserver wrote in
protobuf is decoded; JSON in another order, put there by hand, is put in order.
"""

import orjson

from apiserver.storage.stored import Tree, canonical, is_canonical
from apiserver.wire.protobuf import envelope
from apiserver.wire.protobuf.errors import ProtobufError


class Unreadable(ValueError):
    """A value that is no object at all."""


def read_value(value: bytes) -> bytes:
    """The canonical text of a stored value."""
    return value if is_canonical(value) else canonical(_tree(value))


def _tree(value: bytes) -> Tree:
    try:
        tree = envelope.decode(value) if envelope.is_protobuf(value) else orjson.loads(value)
        kind, api_version, uid = tree["kind"], tree["apiVersion"], tree["metadata"]["uid"]
    except (ProtobufError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise Unreadable(f"a stored value is no object: {error}: {value[:100]!r}") from error
    if not (kind and api_version and uid):
        raise Unreadable(f"a stored value has no kind, version or uid: {value[:100]!r}")
    found: Tree = tree
    return found
