"""What a cluster's handle and the process of its fork send each other: frames of MessagePack over a pair of sockets.

The process has a command's `run`; commands are the methods of a handle that no API of Kubernetes offers. The first frame of
the process is `Started` or `Refused`; the others are responses, in the order of the commands.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from mockube.apiserver.control.faults import Fault
from mockube.apiserver.control.matching import Match
from mockube.apiserver.control.recorder import RecordedCall

_LENGTH_BYTES: Final = 4


class Started(Struct, frozen=True, kw_only=True, tag=True):
    """The fork accepts connections on this port."""

    port: int
    has_steps: bool = False
    """Whether its time passes only as far as commands let it."""


class Result(Struct, frozen=True, kw_only=True, tag=True):
    value: msgspec.Raw


class Refused(Struct, frozen=True, kw_only=True, tag=True):
    message: str
    is_invalid: bool = False
    """Whether an argument is invalid, which is a ValueError; other errors are a Failure."""


Response = Started | Result | Refused


class RecordedCalls(Struct, frozen=True, kw_only=True):
    calls: Sequence[RecordedCall]
    other_verbs: Mapping[str, int]
    dropped: int


class ForkCommand(Struct, frozen=True, kw_only=True, tag=True):
    pass


class ListCalls(ForkCommand, frozen=True, kw_only=True):
    match: Match
    code: int | None


class ClearCalls(ForkCommand, frozen=True, kw_only=True):
    pass


class ListComplaints(ForkCommand, frozen=True, kw_only=True):
    pass


class ListLeaps(ForkCommand, frozen=True, kw_only=True):
    """List the newest spans of time over which the clock has leaped."""


class CheckMatch(ForkCommand, frozen=True, kw_only=True):
    """Refuse criteria that no request can meet."""

    match: Match


class AddFault(ForkCommand, frozen=True, kw_only=True):
    """Add a fault; the result is its number."""

    fault: Fault


class CountHits(ForkCommand, frozen=True, kw_only=True):
    number: int


class RemoveFault(ForkCommand, frozen=True, kw_only=True):
    number: int


class ClearFaults(ForkCommand, frozen=True, kw_only=True):
    pass


class AdvanceClock(ForkCommand, frozen=True, kw_only=True):
    seconds: float


class PassTime(ForkCommand, frozen=True, kw_only=True):
    """Step to the next timer if nothing has arrived since `seen`; the result is a `PassedTime`."""

    seen: int


class PassedTime(Struct, frozen=True, kw_only=True):
    seen: int
    """A number that changes with each arrival."""
    monotonic: float
    """The time of the clock of the fork."""


class Fork(ForkCommand, frozen=True, kw_only=True):
    """Fork the process; its frame comes with the descriptor of the new process's socket. The result is the process id."""


AnyCommand = (
    ListCalls
    | ClearCalls
    | ListComplaints
    | ListLeaps
    | CheckMatch
    | AddFault
    | CountHits
    | RemoveFault
    | ClearFaults
    | AdvanceClock
    | PassTime
    | Fork
)

RESPONSES: Final[msgspec.msgpack.Decoder[Response]] = msgspec.msgpack.Decoder(Response)
COMMANDS: Final[msgspec.msgpack.Decoder[AnyCommand]] = msgspec.msgpack.Decoder(AnyCommand)


def encode_frame(message: ForkCommand | Response) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(_LENGTH_BYTES) + body


def result_of(value: Any) -> Result:
    return Result(value=msgspec.Raw(msgspec.msgpack.encode(value)))


class FrameBuffer:
    """The bytes that were received, until a frame is complete."""

    def __init__(self) -> None:
        self._received = bytearray()

    def receive(self, data: bytes) -> Iterator[bytes]:
        """Yield the bodies of the frames that are complete with this data."""
        self._received += data
        while len(self._received) >= _LENGTH_BYTES:
            end = _LENGTH_BYTES + int.from_bytes(self._received[:_LENGTH_BYTES])
            if len(self._received) < end:
                return
            body = bytes(self._received[_LENGTH_BYTES:end])
            del self._received[:end]
            yield body
