"""The states of a message that is read, and what leads from one to the next."""

from collections.abc import Mapping
from enum import IntEnum, auto
from typing import Final


class State(IntEnum):
    """What is read next. Numbers, because their hashes cost a tenth of those of other enumerations."""

    HEAD = auto()
    """The start line and the headers."""
    LENGTH = auto()
    """A body of a known length."""
    CHUNK_SIZE = auto()
    CHUNK = auto()
    CHUNK_END = auto()
    """The line break after a chunk."""
    TRAILERS = auto()
    """The headers after the last chunk, which nothing uses."""
    TO_END = auto()
    """A body that ends with the connection."""
    DONE = auto()
    SWITCHED = auto()
    """Nothing: what follows is another protocol."""
    FAILED = auto()
    """Nothing: what follows cannot be understood."""


class Trigger(IntEnum):
    """What was read."""

    INFORMATIONAL = auto()
    """The head of a 1xx response, which another response follows."""
    WITHOUT_BODY = auto()
    COUNTED = auto()
    CHUNKED = auto()
    UNCOUNTED = auto()
    SWITCHING = auto()
    """The head of a 101 response."""
    ALL_BYTES = auto()
    """The last byte of a counted body, or of a chunk."""
    SIZE = auto()
    LAST_SIZE = auto()
    LINE_BREAK = auto()
    EMPTY_LINE = auto()
    END = auto()
    """The other side sends no more."""
    MALFORMED = auto()
    NEXT = auto()
    """The caller expects another message."""


_FAILS: Final = {Trigger.END: State.FAILED, Trigger.MALFORMED: State.FAILED}

TRANSITIONS: Final[Mapping[State, Mapping[Trigger, State]]] = {
    State.HEAD: _FAILS
    | {
        Trigger.INFORMATIONAL: State.HEAD,
        Trigger.WITHOUT_BODY: State.DONE,
        Trigger.COUNTED: State.LENGTH,
        Trigger.CHUNKED: State.CHUNK_SIZE,
        Trigger.UNCOUNTED: State.TO_END,
        Trigger.SWITCHING: State.SWITCHED,
    },
    State.LENGTH: _FAILS | {Trigger.ALL_BYTES: State.DONE},
    State.CHUNK_SIZE: _FAILS | {Trigger.SIZE: State.CHUNK, Trigger.LAST_SIZE: State.TRAILERS},
    State.CHUNK: _FAILS | {Trigger.ALL_BYTES: State.CHUNK_END},
    State.CHUNK_END: _FAILS | {Trigger.LINE_BREAK: State.CHUNK_SIZE},
    State.TRAILERS: _FAILS | {Trigger.EMPTY_LINE: State.DONE},
    State.TO_END: {Trigger.END: State.DONE},
    State.DONE: {Trigger.NEXT: State.HEAD},
    State.SWITCHED: {},
    State.FAILED: {Trigger.MALFORMED: State.FAILED},
}
"""A trigger that a state does not have cannot be in it."""
