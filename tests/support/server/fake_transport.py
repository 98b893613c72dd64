"""A fake asyncio transport: the test supplies the received bytes, and reads the sent ones."""

import asyncio


class FakeTransport(asyncio.Transport):
    """`received` takes bytes from the test; `sent` contains the bytes that the server wrote."""

    def __init__(self, protocol):
        super().__init__()
        self.protocol = protocol
        self.sent = bytearray()
        self.is_reading = True
        self.is_closed = False
        protocol.connection_made(self)

    def receive(self, *pieces):
        for piece in pieces:
            self.protocol.data_received(piece)

    def get_extra_info(self, name, default=None):
        return ("192.0.2.7", 1) if name == "peername" else default

    def get_write_buffer_size(self):
        return 0

    def set_write_buffer_limits(self, high=None, low=None):
        pass

    def write(self, data):
        self.sent += data

    def pause_reading(self):
        self.is_reading = False

    def resume_reading(self):
        self.is_reading = True

    def is_closing(self):
        return self.is_closed

    def close(self):
        if not self.is_closed:
            self.is_closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close
