"""The numbers of targets, and the messages to the kernel about them."""

import struct

import pytest

from mockube.container_runtime.pod_network import targets
from mockube.container_runtime.pod_network.netlink import attributes, messages
from mockube.container_runtime.pod_network.targets import Targets

ADD, REMOVE, FORGET = 10 << 8 | 12, 10 << 8 | 14, 1 << 8 | 2


class Kernel:
    """Records the messages that it receives."""

    def __init__(self):
        self.kinds = []
        self.elements = []

    def send(self, data):
        for kind, _, body in messages(data):
            if kind in (ADD, REMOVE, FORGET):
                self.kinds.append(kind)
            if kind == ADD:
                element = attributes(attributes(attributes(body[4:])[3])[1])
                key, value = (bytes(attributes(element[number])[1]) for number in (1, 2))
                self.elements.append((struct.unpack("=I", key)[0], value))

    def recv(self, *_):
        raise BlockingIOError


@pytest.fixture
def kernel():
    return Kernel()


def test_target_has_one_number(kernel):
    numbers = Targets(kernel)
    first, second = numbers.number_of("10.244.0.2", 8080), numbers.number_of("fd00::2", 53)
    assert numbers.number_of("10.244.0.2", 8080) == first != second
    assert kernel.elements == [
        (first, b"\x0a\xf4\x00\x02\x1f\x90\x00\x00"),
        (second, b"\xfd" + bytes(14) + b"\x02" + b"\x00\x35\x00\x00"),
    ]


def test_removed_address_has_no_target_and_no_connections(kernel):
    numbers = Targets(kernel)
    first = numbers.number_of("10.244.0.2", 8080)
    numbers.number_of("10.244.0.3", 8080)
    numbers.remove(("10.244.0.2",))
    assert kernel.kinds == [ADD, ADD, REMOVE, FORGET]
    assert numbers.number_of("10.244.0.2", 8080) != first


def test_oldest_target_goes_when_there_are_too_many(kernel, monkeypatch):
    monkeypatch.setattr(targets, "MAX_TARGETS", 2)
    numbers = Targets(kernel)
    for port in (1, 2):
        numbers.number_of("10.244.0.2", port)
    used = numbers.number_of("10.244.0.2", 1)
    numbers.number_of("10.244.0.2", 3)
    assert kernel.kinds == [ADD, ADD, ADD, REMOVE]
    assert numbers.number_of("10.244.0.2", 1) == used
