"""The way from an operator in a network of its own to its API server."""

import socket
import threading

import pytest

from mockube.operators.server_relay import ServerRelay


class Answering:
    """A server that answers each piece in capitals, and ends after the client has."""

    def __init__(self):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = "https://{}:{}".format(*self._listening.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(99):
                    connection.sendall(data.upper())

    def close(self):
        self._listening.close()


@pytest.fixture
def server():
    made = Answering()
    yield made
    made.close()


def handed_over(relay):
    """Hand a listening socket to a relay, as the launcher of an operator does, and return its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    address = listening.getsockname()
    socket.send_fds(relay.channel, [b"1"], [listening.fileno()])
    listening.close()
    return address


def test_connections_are_relayed_until_the_relay_is_closed(server):
    relay = ServerRelay(server.url)
    assert relay.address == ("127.0.0.1", int(server.url.rpartition(":")[2]))
    address = handed_over(relay)
    for text in (b"first", b"second"):
        with socket.create_connection(address) as client:
            client.sendall(text)
            assert client.recv(99) == text.upper()
            client.shutdown(socket.SHUT_WR)
            assert client.recv(9) == b"", "the end of the server"
    relay.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def test_connection_to_a_server_that_is_gone_ends(server):
    relay = ServerRelay("https://127.0.0.1:1")
    with socket.create_connection(handed_over(relay)) as client:
        assert client.recv(9) == b""
    relay.close()


def test_relay_without_an_operator_is_closed():
    relay = ServerRelay("https://server.example")
    assert relay.address == ("server.example", 443)
    relay.close()
    assert not relay._thread.is_alive()
    assert (relay.channel.fileno(), relay._own.fileno()) == (-1, -1)
