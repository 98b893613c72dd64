"""The commands that a server in a container sends to a server of Redis over the network of its pod."""

from contextvars import ContextVar
from typing import Final

from mockube.container_runtime.simulated.network.calls import (
    Connect,
    Lookup,
    NetworkCaller,
    Reply,
    decode_reply,
    encode_call,
)
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

from .name_lookup import find_address

REDIS: Final = "redis"
_MAX_HOPS: Final = 8
"""The replicas of replicas that one command may ask."""
_HOPS: ContextVar[int] = ContextVar("redis_hops", default=0)


async def ask_redis(network: NetworkCaller, files: FileSystem, host: str, port: int, data: bytes) -> bytes:
    """Send commands to a server; return its replies, which are empty without a connection. `files` has the settings of names."""

    async def call(request: Lookup | Connect) -> Reply:
        return decode_reply(await network(encode_call(request)))

    found = await find_address(host, files, call)
    hops = _HOPS.get()
    if not found.address or hops >= _MAX_HOPS:
        return b""
    token = _HOPS.set(hops + 1)
    try:
        reply = await call(Connect(address=found.address, port=port, data=data))
    finally:
        _HOPS.reset(token)
    return reply.body if reply.is_open and reply.speaks == REDIS else b""
