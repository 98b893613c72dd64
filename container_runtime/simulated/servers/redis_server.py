"""A server of Redis: the commands on keys that exercises use, and those of replication. Others are refused by name.

The keys of a run of a container are in memory, and bounded.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.wildcards import WildcardsTooCostly, matches_wildcards
from mockube.container_runtime.images.table import MAX_PORT
from mockube.container_runtime.simulated.shell.network_programs.redis_protocol import (
    array,
    bulk,
    commands_in,
    encode_command,
)

from .redis_parameters import DEFAULTS, parameter
from .redis_replication import Replication, SyncReply, sync_reply_in

MAX_BYTES: Final = 1 << 20
"""The bytes of all keys and values of a server."""
_MAX_REPLIES: Final = 1000
"""The commands of one piece of data that are answered."""
_WRONG_TYPE: Final = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
_NO_AUTH: Final = "-NOAUTH Authentication required.\r\n"
_WRONG_PASSWORD: Final = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"  # noqa: S105 - a message
_FULL: Final = "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
_NO_LINK: Final = "-NOMASTERLINK Can't SYNC while not connected with my master\r\n"
_IMMUTABLE: Final = (
    "-ERR CONFIG SET failed (possibly related to argument 'replicaof') - can't set immutable config\r\n"
)
_READ_ONLY: Final = "-READONLY You can't write against a read only replica.\r\n"
_OK: Final = "+OK\r\n"
Value = str | list[str] | dict[str, str]


class RedisError(Exception):
    """A command fails; the message is the reply."""


class RedisServer:
    """The data of one server."""

    def __init__(self, parameters: Mapping[str, str] | None = None, seed: str = "") -> None:
        """`seed` is different for each server: its history of writes is named by it."""
        self._parameters = {**DEFAULTS, **(parameters or {})}
        self._values: dict[str, Value] = {}
        self._expiries: dict[str, float] = {}
        self.replication = Replication(seed)

    @property
    def leader(self) -> tuple[str, int] | None:
        """The host and the port of the server whose keys this one has; None if it has its own."""
        host, _, port = self._parameters["replicaof"].partition(" ")
        number = int_or_none(port)
        return (host, number) if host and number is not None and 0 < number <= MAX_PORT else None

    def sync_request(self, address: str) -> bytes:
        """Return what this server sends to its leader, for what the leader has by now; `address` is its own."""
        password = self._parameters["masterauth"]
        login = encode_command(["AUTH", password]) if password else b""
        return login + self.replication.request(address, self._parameters["port"])

    def synchronize(self, data: bytes, now: float) -> None:
        """Take over what the leader has sent; nothing if the link to it is broken."""
        reply = sync_reply_in(data)
        self.replication.is_linked = reply is not None
        if reply is not None and reply.history:
            self._load(reply, now)

    def _load(self, reply: SyncReply, now: float) -> None:
        self.flush((), now)
        for name, *words in commands_in(reply.commands):
            self._execute(name, words, now)
        self.replication.history, self.replication.offset = reply.history, reply.offset

    def _snapshot(self) -> str:
        """Return the commands that make the present keys."""
        commands = [_commands_of(key, value) for key, value in self._values.items() if value or value == ""]
        commands += [
            ["PEXPIREAT", key, str(int(at * 1000))]
            for key, at in self._expiries.items()
            if key in self._values
        ]
        return b"".join(map(encode_command, commands)).decode("utf-8", "surrogateescape")

    def reply(self, data: bytes, password: str, now: float) -> bytes:
        """Return the replies to the commands that a client sends over a new connection."""
        replies = list[str]()
        is_authenticated = not password
        for words in list(commands_in(data))[:_MAX_REPLIES]:
            name = words[0].upper()
            if name == "QUIT":
                replies.append(_OK)
                break
            if name == "AUTH":
                is_authenticated = words[-1] == password
                replies.append(_OK if is_authenticated else _WRONG_PASSWORD)
            elif not is_authenticated:
                replies.append(_NO_AUTH)
            else:
                replies.append(self._run(name, words[1:], now))
        return "".join(replies).encode("utf-8", "surrogateescape")

    def _run(self, name: str, words: Sequence[str], now: float) -> str:
        for key in [key for key, at in self._expiries.items() if at <= now]:
            del self._expiries[key]
            self._values.pop(key, None)
        command = _COMMANDS.get(name)
        if command is None:
            return f"-ERR mockube: the command {name} of Redis is not simulated\r\n"
        if len(words) < command[0]:
            return f"-ERR wrong number of arguments for '{name.lower()}' command\r\n"
        if name not in _WRITES:
            return self._execute(name, words, now)
        if self.leader is not None and self._parameters["replica-read-only"] != "no":
            return _READ_ONLY
        reply = self._execute(name, words, now)
        if name in _GROWING and self._size() > MAX_BYTES and self._drop(words[0]):
            return _FULL
        if not reply.startswith("-"):
            self.replication.offset += len(encode_command([name, *words]))
        return reply

    def _execute(self, name: str, words: Sequence[str], now: float) -> str:
        try:
            return _COMMANDS[name][1](self, words, now)
        except RedisError as error:
            return str(error)

    def _size(self) -> int:
        return sum(len(key) + len(repr(value)) for key, value in self._values.items())

    def _drop(self, key: str) -> bool:
        self._expiries.pop(key, None)
        return self._values.pop(key, None) is not None

    def text(self, key: str) -> str | None:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            raise RedisError(_WRONG_TYPE)
        return value

    def items(self, key: str) -> list[str]:
        value = self._values.setdefault(key, [])
        if not isinstance(value, list):
            raise RedisError(_WRONG_TYPE)
        return value

    def fields(self, key: str) -> dict[str, str]:
        value = self._values.setdefault(key, {})
        if not isinstance(value, dict):
            raise RedisError(_WRONG_TYPE)
        return value

    # --- commands

    def ping(self, words: Sequence[str], _: float) -> str:
        return bulk(words[0]) if words else "+PONG\r\n"

    def set(self, words: Sequence[str], now: float) -> str:
        key, value, *options = words
        upper = [option.upper() for option in options]
        if ("NX" in upper and key in self._values) or ("XX" in upper and key not in self._values):
            return "$-1\r\n"
        self._values[key] = value
        self._expiries.pop(key, None)
        for option, factor in (("EX", 1.0), ("PX", 0.001)):
            if option in upper:
                self._expire(key, next(iter(options[upper.index(option) + 1 :]), ""), factor, now)
        return _OK

    def _expire(self, key: str, text: str, factor: float, now: float) -> None:
        self._expiries[key] = now + _number(text) * factor

    def get(self, words: Sequence[str], _: float) -> str:
        return bulk(self.text(words[0]))

    def delete(self, words: Sequence[str], _: float) -> str:
        return f":{sum(self._drop(key) for key in words)}\r\n"

    def exists(self, words: Sequence[str], _: float) -> str:
        return f":{sum(key in self._values for key in words)}\r\n"

    def add(self, key: str, by: int) -> str:
        value = _number(self.text(key) or "0") + by
        self._values[key] = str(value)
        return f":{value}\r\n"

    def append(self, words: Sequence[str], _: float) -> str:
        self._values[words[0]] = value = (self.text(words[0]) or "") + words[1]
        return f":{len(value)}\r\n"

    def keys(self, words: Sequence[str], _: float) -> str:
        return array([key for key in self._values if _matches(key, words[0])])

    def expire(self, words: Sequence[str], now: float) -> str:
        if words[0] not in self._values:
            return ":0\r\n"
        self._expire(words[0], words[1], 1.0, now)
        return ":1\r\n"

    def expire_at(self, words: Sequence[str], _: float) -> str:
        if words[0] not in self._values:
            return ":0\r\n"
        self._expire(words[0], words[1], 0.001, 0.0)
        return ":1\r\n"

    def ttl(self, words: Sequence[str], now: float) -> str:
        if words[0] not in self._values:
            return ":-2\r\n"
        at = self._expiries.get(words[0])
        return ":-1\r\n" if at is None else f":{round(at - now)}\r\n"

    def type(self, words: Sequence[str], _: float) -> str:
        value = self._values.get(words[0])
        kind = {str: "string", list: "list", dict: "hash", type(None): "none"}[value.__class__]
        return f"+{kind}\r\n"

    def push(self, words: Sequence[str], *, is_left: bool) -> str:
        items = self.items(words[0])
        for word in words[1:]:
            items.insert(0 if is_left else len(items), word)
        return f":{len(items)}\r\n"

    def range(self, words: Sequence[str], _: float) -> str:
        items, start, end = self.items(words[0]), _number(words[1]), _number(words[2])
        return array(
            items[start if start >= 0 else max(len(items) + start, 0) : len(items) if end == -1 else end + 1]
        )

    def put_fields(self, words: Sequence[str], _: float) -> str:
        fields, before = self.fields(words[0]), len(self.fields(words[0]))
        fields.update(zip(words[1::2], words[2::2], strict=False))
        return f":{len(fields) - before}\r\n"

    def all_fields(self, words: Sequence[str], _: float) -> str:
        return array([text for pair in self.fields(words[0]).items() for text in pair])

    def flush(self, _: Sequence[str], __: float) -> str:
        self._values.clear()
        self._expiries.clear()
        return _OK

    def info(self, words: Sequence[str], _: float) -> str:
        keys = [f"db0:keys={len(self._values)},expires={len(self._expiries)},avg_ttl=0"]
        mode = {"slave_read_only": "0" if self._parameters["replica-read-only"] == "no" else "1"}
        sections = {
            "Server": ["redis_mode:standalone"],
            "Replication": self.replication.lines(self.leader, mode),
            "Keyspace": keys if self._values else [],
        }
        requested = {word.title() for word in words}
        names = [name for name in sections if name in requested] or [*sections]
        return bulk(
            "\r\n".join("".join(f"{line}\r\n" for line in (f"# {name}", *sections[name])) for name in names)
        )

    def role(self, _: Sequence[str], __: float) -> str:
        return self.replication.role(self.leader)

    def announce(self, words: Sequence[str], _: float) -> str:
        """Note what a replica says of itself before it asks for the keys."""
        self.replication.announced |= dict(
            zip((word.lower() for word in words[::2]), words[1::2], strict=False)
        )
        return _OK

    def send_keys(self, words: Sequence[str], _: float) -> str:
        """Answer a replica that has what this server had at an offset of its history."""
        replication = self.replication
        if self.leader is not None and not replication.is_linked:
            return _NO_LINK
        replication.add_replica()
        if list(words[:2]) == [replication.history, str(replication.offset)]:
            return f"+CONTINUE {replication.history}\r\n"
        return f"+FULLRESYNC {replication.history} {replication.offset}\r\n{bulk(self._snapshot())}"

    def follow(self, words: Sequence[str], _: float) -> str:
        """Have the keys of another server from now on, or one's own after `NO ONE`."""
        is_own = [word.lower() for word in words[:2]] == ["no", "one"]
        self.replication.is_linked = False
        if is_own and self.leader is not None:
            self.replication.begin_history()
        self._parameters["replicaof"] = "" if is_own else f"{words[0]} {_number(words[1])}"
        return _OK

    def configure(self, words: Sequence[str], _: float) -> str:
        """Show parameters by a pattern, or set one."""
        action, name, *values = words
        if action.upper() == "GET":
            found = [key for key in sorted(self._parameters) if _matches(key, name.lower())]
            if not found and not any(char in name for char in "*?["):
                raise RedisError(f"-ERR mockube: the parameter {name} of Redis is not simulated\r\n")
            return array([text for key in found for text in (key, self._parameters[key])])
        if action.upper() == "SET" and name.lower() == "replicaof":
            raise RedisError(_IMMUTABLE)
        if action.upper() == "SET" and values and name.lower() in self._parameters:
            self._parameters[name.lower()] = parameter(name.lower(), values[0])
            return _OK
        raise RedisError(f"-ERR mockube: CONFIG {action} {name} of Redis is not simulated\r\n")

    def size(self, _: Sequence[str], __: float) -> str:
        return f":{len(self._values)}\r\n"


Command = Callable[[RedisServer, Sequence[str], float], str]
_COMMANDS: Final[Mapping[str, tuple[int, Command]]] = {
    "PING": (0, RedisServer.ping),
    "ECHO": (1, RedisServer.ping),
    "SELECT": (1, lambda *_: _OK),
    "CLIENT": (0, lambda *_: _OK),
    "SET": (2, RedisServer.set),
    "GET": (1, RedisServer.get),
    "DEL": (1, RedisServer.delete),
    "UNLINK": (1, RedisServer.delete),
    "EXISTS": (1, RedisServer.exists),
    "INCR": (1, lambda server, words, _: server.add(words[0], 1)),
    "DECR": (1, lambda server, words, _: server.add(words[0], -1)),
    "INCRBY": (2, lambda server, words, _: server.add(words[0], _number(words[1]))),
    "DECRBY": (2, lambda server, words, _: server.add(words[0], -_number(words[1]))),
    "APPEND": (2, RedisServer.append),
    "KEYS": (1, RedisServer.keys),
    "EXPIRE": (2, RedisServer.expire),
    "PEXPIREAT": (2, RedisServer.expire_at),
    "TTL": (1, RedisServer.ttl),
    "TYPE": (1, RedisServer.type),
    "LPUSH": (2, lambda server, words, _: server.push(words, is_left=True)),
    "RPUSH": (2, lambda server, words, _: server.push(words, is_left=False)),
    "LRANGE": (3, RedisServer.range),
    "LLEN": (1, lambda server, words, _: f":{len(server.items(words[0]))}\r\n"),
    "HSET": (3, RedisServer.put_fields),
    "HGET": (2, lambda server, words, _: bulk(server.fields(words[0]).get(words[1]))),
    "HGETALL": (1, RedisServer.all_fields),
    "DBSIZE": (0, RedisServer.size),
    "FLUSHALL": (0, RedisServer.flush),
    "FLUSHDB": (0, RedisServer.flush),
    "INFO": (0, RedisServer.info),
    "CONFIG": (2, RedisServer.configure),
    "ROLE": (0, RedisServer.role),
    "REPLICAOF": (2, RedisServer.follow),
    "SLAVEOF": (2, RedisServer.follow),
    "REPLCONF": (0, RedisServer.announce),
    "PSYNC": (2, RedisServer.send_keys),
}
"""The commands with the number of their arguments, at least."""
_GROWING: Final = frozenset({"SET", "APPEND", "LPUSH", "RPUSH", "HSET"})
_WRITES: Final = _GROWING | {
    "DEL", "UNLINK", "INCR", "DECR", "INCRBY", "DECRBY", "EXPIRE", "PEXPIREAT", "FLUSHALL", "FLUSHDB",
}  # fmt: skip


def _commands_of(key: str, value: Value) -> list[str]:
    match value:
        case str():
            return ["SET", key, value]
        case list():
            return ["RPUSH", key, *value]
        case _:
            return ["HSET", key, *(text for pair in value.items() for text in pair)]


def _matches(key: str, pattern: str) -> bool:
    try:
        return matches_wildcards(key, pattern)
    except WildcardsTooCostly:
        return False


def _number(text: str) -> int:
    number = int_or_none(text)
    if number is None:
        raise RedisError("-ERR value is not an integer or out of range\r\n")
    return number
