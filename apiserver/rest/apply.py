"""Server-side apply: a client says what it wants to manage, and the server settles it with all other managers."""

from apimachinery import status
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, ObjectAnswer

APPLY_TYPES = frozenset({"application/apply-patch+yaml", "application/apply-patch+cbor"})


async def apply(backend: Backend, call: Call) -> ObjectAnswer:
    raise status.UnsupportedMediaType("415: Unsupported Media Type")
