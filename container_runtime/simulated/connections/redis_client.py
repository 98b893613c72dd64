"""The commands that a server in a container sends to a server of Redis over the network of its pod, and how the connection fails."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from mockube.container_runtime.simulated.network.calls import (
    Connect,
    Lookup,
    NetworkCaller,
    Reply,
    decode_reply,
    encode_call,
)
from mockube.container_runtime.simulated.shell.filesystem import FileSystem
from mockube.network.services import Outcome

from .name_lookup import find_address

REDIS: Final = "redis"
_MAX_HOPS: Final = 8
"""The replicas of replicas that one command may ask."""
_HOPS: ContextVar[int] = ContextVar("redis_hops", default=0)
_REASONS: Final = {
    Outcome.REFUSED.value: "Connection refused",
    Outcome.TIMEOUT.value: "Connection timed out",
    Outcome.UNREACHABLE.value: "No route to host",
}
_NO_NAME: Final = "Name or service not known"
_NO_NAME_SERVER: Final = "Temporary failure in name resolution"


class RedisAnswer(Struct, frozen=True, kw_only=True):
    data: bytes = b""
    """The replies; empty if there are none."""
    unknown_name: str = ""
    """Why the host has no address, in the words of the C library."""
    reason: str = ""
    """Why there is no connection, in the words of the C library."""
    has_timed_out: bool = False


async def ask_redis(
    network: NetworkCaller, files: FileSystem, host: str, port: int, data: bytes
) -> RedisAnswer:
    """Send commands to a server; `files` has the settings of names."""

    async def call(request: Lookup | Connect) -> Reply:
        return decode_reply(await network(encode_call(request)))

    found = await find_address(host, files, call)
    if not found.address:
        reason = _NO_NAME_SERVER if found.has_timed_out else _NO_NAME
        return RedisAnswer(unknown_name=reason, has_timed_out=found.has_timed_out)
    hops = _HOPS.get()
    if hops >= _MAX_HOPS:
        return RedisAnswer()
    token = _HOPS.set(hops + 1)
    try:
        reply = await call(Connect(address=found.address, port=port, data=data))
    finally:
        _HOPS.reset(token)
    if not reply.is_open:
        reason = _REASONS.get(reply.outcome, "Network is unreachable")
        return RedisAnswer(reason=reason, has_timed_out=reply.outcome == Outcome.TIMEOUT.value)
    return RedisAnswer(data=reply.body if reply.speaks == REDIS else b"")


def redis_host(name: str, variables: Mapping[str, str]) -> str:
    """Return the host that the programs of the guestbook contact: a name, or the address that the kubelet has put into a variable."""
    if variables.get("GET_HOSTS_FROM") == "env":
        return variables.get(f"{name.upper().replace('-', '_')}_SERVICE_HOST", "")
    return name
