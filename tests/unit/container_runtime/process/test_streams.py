"""The streams of commands that run as processes."""

from mockube.container_runtime.process.streams import _copy_input


class Source:
    """A client that goes on sending."""

    is_discarded = False

    async def read(self, _size):
        return b"more"

    def discard(self):
        self.is_discarded = True


class EndedProcess:
    """A process that has ended: uvloop refuses writes to its input with RuntimeError."""

    def __init__(self):
        self.stdin = self

    def is_closing(self):
        return True

    def write(self, _data):
        raise RuntimeError("unable to perform operation on a closed handle")


async def test_input_after_the_end_of_a_process_is_discarded():
    source = Source()
    await _copy_input(EndedProcess(), source)
    assert source.is_discarded
