"""The replication of Redis: whose keys a server has, who has its own, and what INFO and ROLE show of both. Pure."""

from collections.abc import Mapping
from hashlib import sha256
from itertools import islice
from typing import Final

from msgspec import Struct

from mockube.container_runtime.simulated.shell.network_programs.redis_protocol import (
    RedisReply,
    bulk,
    encode_command,
    nested,
    replies_in,
)

_NO_HISTORY: Final = "?"
_UNKNOWN_OFFSET: Final = "-1"
_MAX_REPLICAS: Final = 100
Leader = tuple[str, int]


class SyncReply(Struct, frozen=True, kw_only=True):
    """What a leader sends: the commands that make its keys, unless the replica has them already."""

    history: str = ""
    """The name of the leader's history; "" if the replica goes on with the one that it has."""
    offset: int = 0
    commands: bytes = b""


def sync_reply_in(data: bytes) -> SyncReply | None:
    """Return the reply to a request for keys; None if there is none."""
    replies = replies_in(data)
    for reply in replies:
        word, *words = reply.split() if isinstance(reply, str) and reply.split() else [""]
        if word == "CONTINUE":
            return SyncReply()
        if word == "FULLRESYNC" and len(words) == 2 and words[1].isdecimal():
            return _full_reply(words[0], int(words[1]), next(replies, None))
    return None


def _full_reply(history: str, offset: int, commands: RedisReply) -> SyncReply | None:
    if not isinstance(commands, str):
        return None
    encoded = commands.encode("utf-8", "surrogateescape")
    return SyncReply(history=history, offset=offset, commands=encoded)


class Replication:
    """The state of one server."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self.history = _name(seed)
        """The name of the writes that made the keys: the leader's at a replica that has its keys."""
        self.offset = 0
        """The bytes of these writes."""
        self.is_linked = False
        """Whether the leader has answered the latest request for its keys."""
        self.replicas: dict[tuple[str, str], int] = {}
        """The addresses and ports of the replicas, with the offsets of what they have."""
        self.announced: dict[str, str] = {}
        """What the replica says of itself whose request is being answered."""

    def begin_history(self) -> None:
        """Begin a history of one's own, with the keys that were those of the leader."""
        self._seed += "'"
        self.history = _name(self._seed)

    def request(self, address: str, port: str) -> bytes:
        """Return a replica's request for the keys that it does not have yet."""
        has_keys = self.history != _name(self._seed)
        known = (self.history, str(self.offset)) if has_keys else (_NO_HISTORY, _UNKNOWN_OFFSET)
        return encode_command(["REPLCONF", "listening-port", port, "ip-address", address]) + encode_command(
            ["PSYNC", *known]
        )

    def add_replica(self) -> None:
        key = (self.announced.get("ip-address", ""), self.announced.get("listening-port", ""))
        if key in self.replicas or len(self.replicas) < _MAX_REPLICAS:
            self.replicas[key] = self.offset
        self.announced = {}

    def lines(self, leader: Leader | None, further: Mapping[str, str]) -> list[str]:
        """Return the lines of INFO; `further` are those of a replica that its parameters say."""
        fields: dict[str, object] = {"role": "master"}
        if leader is not None:
            fields = {
                "role": "slave",
                "master_host": leader[0],
                "master_port": leader[1],
                "master_link_status": "up" if self.is_linked else "down",
                "master_last_io_seconds_ago": 0 if self.is_linked else -1,
                "master_sync_in_progress": 0,
                "slave_repl_offset": self.offset,
                "slave_priority": 100,
                **further,
            }
        fields["connected_slaves"] = len(self.replicas)
        for index, ((address, port), offset) in enumerate(islice(self.replicas.items(), _MAX_REPLICAS)):
            fields[f"slave{index}"] = f"ip={address},port={port},state=online,offset={offset},lag=0"
        fields |= {"master_replid": self.history, "master_repl_offset": self.offset}
        return [f"{name}:{value}" for name, value in fields.items()]

    def role(self, leader: Leader | None) -> str:
        """Return the reply to ROLE."""
        if leader is not None:
            state = "connected" if self.is_linked else "connect"
            offset = self.offset if self.is_linked else -1
            return nested(
                [bulk("slave"), bulk(leader[0]), f":{leader[1]}\r\n", bulk(state), f":{offset}\r\n"]
            )
        replicas = [
            nested([bulk(address), bulk(port), bulk(str(offset))])
            for (address, port), offset in self.replicas.items()
        ]
        return nested([bulk("master"), f":{self.offset}\r\n", nested(replicas)])


def _name(seed: str) -> str:
    return sha256(seed.encode()).hexdigest()[:40]
