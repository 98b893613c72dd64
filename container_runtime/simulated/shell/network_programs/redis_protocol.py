"""The protocol of Redis: commands, and the replies to them. Pure."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from mockube.apimachinery.gotext import int_or_none

_END = "\r\n"


class ErrorReply(Struct, frozen=True):
    """A reply that is an error."""

    text: str


RedisReply = str | int | ErrorReply | list["RedisReply"] | None


def encode_command(words: Sequence[str]) -> bytes:
    return _encoded(array(words))


def bulk(text: str | None) -> str:
    return f"$-1{_END}" if text is None else f"${len(_encoded(text))}{_END}{text}{_END}"


def array(texts: Sequence[str]) -> str:
    return nested([bulk(text) for text in texts])


def nested(replies: Sequence[str]) -> str:
    """Return an array of encoded replies."""
    return f"*{len(replies)}{_END}" + "".join(replies)


def commands_in(data: bytes) -> Iterator[list[str]]:
    """Yield the words of each command: an array, or a line. One that is not complete is left out."""
    reader = _Reader(data)
    while not reader.is_at_end:
        line = reader.line()
        count = _number(line, "*")
        words = line.split() if count is None else reader.bulks(count)
        if words:
            yield words


def replies_in(data: bytes) -> Iterator[RedisReply]:
    reader = _Reader(data)
    while not reader.is_at_end:
        yield reader.reply()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def line(self) -> str:
        end = self._data.find(b"\n", self._at)
        end = len(self._data) if end < 0 else end
        line = self._data[self._at : end]
        self._at = end + 1
        return _decoded(line.removesuffix(b"\r"))

    def text(self, length: int) -> str:
        text = self._data[self._at : self._at + length]
        self._at += length + len(_END)
        return _decoded(text)

    def bulks(self, count: int) -> list[str]:
        """Return the words of an array; none if they are not complete, and then nothing follows."""
        words = list[str]()
        while len(words) < count:
            length = _number(self.line(), "$")
            if length is None or self._at + length > len(self._data):
                self._at = len(self._data)
                return []
            words.append(self.text(length))
        return words

    def reply(self) -> RedisReply:
        line = self.line()
        match line[:1]:
            case "$":
                length = _number(line, "$")
                return None if length is None else self.text(length)
            case "*":
                count = _number(line, "*") or 0
                return [self.reply() for _ in range(count) if not self.is_at_end]
            case ":":
                number = int_or_none(line[1:])
                return line[1:] if number is None else number
            case "-":
                return ErrorReply(line[1:])
            case _:
                return line[1:]


def _number(line: str, mark: str) -> int | None:
    """Return the number in a line that begins with a mark; None if it is another line, or the number is negative or huge."""
    digits = line[1:]
    is_number = line.startswith(mark) and digits.isascii() and digits.isdecimal()
    return int(digits) if is_number and len(digits) < len("1000000000") else None


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
