"""A TLS connection in memory, of a client and a server."""

import ssl

from tests.support.chains.shapes import HOST


class MemoryConnection:
    """Both sides of a connection; bytes are passed on only by `exchange`."""

    def __init__(self, context, server):
        self.to_client, self.to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = context.wrap_bio(self.to_client, self.to_server, server_hostname=HOST)
        self.incoming, outgoing = ssl.MemoryBIO(), self.to_client
        self.server = server.wrap_bio(self.incoming, outgoing, server_side=True)

    def step(self, side):
        """Continue the handshake of a side; return whether it is complete."""
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def send_to_server(self):
        data = self.to_server.read()
        self.incoming.write(data)
        return data

    def connect(self):
        """Complete the handshake."""
        while not self.step(self.client):
            self.send_to_server()
            self.step(self.server)
        self.send_to_server()
        self.step(self.server)
