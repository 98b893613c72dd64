"""Patch: a change to an object, in any of four languages."""

from apimachinery import status
from apiserver.rest.backend import Backend
from apiserver.rest.call import Call, ObjectAnswer


async def patch(backend: Backend, call: Call) -> ObjectAnswer:
    raise status.UnsupportedMediaType("415: Unsupported Media Type")
