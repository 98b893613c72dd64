"""Frames of the log: validity, and the search for the next valid frame after damage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.etcd.embedded import frame

PAYLOADS = st.lists(st.binary(max_size=40), max_size=6)


def encoded_frames(payloads, start=0):
    data = bytes(start)
    for payload in payloads:
        data += frame.encode(payload, len(data))
    return data


def payloads(data, start=0):
    return [bytes(found.payload) for found in frame.read_frames(data, start)]


@given(PAYLOADS, st.integers(0, 9))
def test_written_frames_are_read(given_payloads, start):
    assert payloads(encoded_frames(given_payloads, start), start) == given_payloads


@given(PAYLOADS.filter(len), st.data())
def test_truncation_keeps_earlier_frames(given_payloads, data):
    content = encoded_frames(given_payloads)
    at = data.draw(st.integers(0, len(content) - 1))
    left = payloads(content[:at])
    assert left == given_payloads[: len(left)]
    assert len(left) < len(given_payloads)
    assert len(encoded_frames(given_payloads[: len(left) + 1])) > at


@given(PAYLOADS.filter(len), st.data())
def test_flipped_byte_is_detected(given_payloads, data):
    content = bytearray(encoded_frames(given_payloads))
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    left = payloads(bytes(content))
    assert left == given_payloads[: len(left)]
    assert len(left) < len(given_payloads)


@pytest.mark.parametrize("at", range(len(frame.encode(b"first", 0))))
def test_next_frame_is_found_after_damage(at):
    content = bytearray(encoded_frames([b"first", b"second"]))
    content[at] ^= 0x10
    assert frame.find_frame(bytes(content), 0) == len(encoded_frames([b"first"]))


def test_frame_at_other_offset_is_invalid():
    # A value can contain a copy of a log; a frame within a payload must not be found as a frame of the file.
    copy = frame.encode(b"stored as a value", 100)
    content = b"?" + encoded_frames([copy])[1:]
    assert copy in content
    assert frame.find_frame(content, 0) is None


def test_trailing_zeros_contain_no_frame():
    content = encoded_frames([b"one"]) + bytes(4096)
    assert payloads(content) == [b"one"]
    assert frame.find_frame(content, len(encoded_frames([b"one"]))) is None
