"""Whether something listens where a URL leads."""

import socket

import pytest

from mockube.published.listening import is_unserved


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@pytest.mark.parametrize("host", ["127.0.0.1", "shop.localhost"])
def test_url_is_served_while_a_program_listens(listener, host):
    url = f"http://{host}:{listener.getsockname()[1]}"
    assert not is_unserved(url, "127.0.0.1")
    listener.close()
    assert is_unserved(url, "127.0.0.1")


@pytest.mark.parametrize("url", ["http://203.0.113.7:1", "https://shop.example"])
def test_nothing_is_known_of_other_machines(url):
    assert not is_unserved(url, "203.0.113.7")
