"""Frames of SPDY/3.1, as the specification defines them."""

import zlib

import pytest

from mockube.kubelet.server import spdy
from mockube.kubelet.server.spdy import ControlFrame, DataFrame, FrameReader, FrameWriter, SpdyError


def test_spdy_dictionary_is_that_of_specification():
    assert len(spdy.DICTIONARY) == 1423
    assert zlib.adler32(spdy.DICTIONARY) == 0xE3C6A7C2


def test_spdy_frames_are_read_from_any_chunks():
    writer = FrameWriter()
    sent = b"".join(
        [
            writer.syn_stream(1, {"streamType": "stdin", "Port": "80"}),
            writer.syn_reply(1, {}),
            writer.data(1, b"hello"),
            writer.data(1, b"", last=True),
            writer.ping(7),
            writer.syn_stream(3, {"streamtype": "stdout"}, last=True),
            writer.reset(3, 5),
            writer.goaway(3),
        ]
    )
    frames = [
        ControlFrame(spdy.SYN_STREAM, 1, 0, {"streamtype": "stdin", "port": "80"}),
        ControlFrame(spdy.SYN_REPLY, 1, 0, {}),
        DataFrame(1, b"hello"),
        DataFrame(1, b"", spdy.FIN),
        ControlFrame(spdy.PING, 0, value=7),
        ControlFrame(spdy.SYN_STREAM, 3, spdy.FIN, {"streamtype": "stdout"}),
        ControlFrame(spdy.RST_STREAM, 3, value=5),
        ControlFrame(spdy.GOAWAY, 3, value=0),
    ]
    assert list(FrameReader().feed(sent)) == frames
    reader = FrameReader()
    assert [frame for byte in sent for frame in reader.feed(bytes([byte]))] == frames


def test_control_frame_has_layout_of_specification():
    assert FrameWriter().ping(9) == b"\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x09"
    assert FrameWriter().data(5, b"ab", last=True) == b"\x00\x00\x00\x05\x01\x00\x00\x02ab"


def test_settings_and_window_updates_are_ignored():
    ignored = (
        b"\x80\x03\x00\x04\x00\x00\x00\x04\x00\x00\x00\x00\x80\x03\x00\x09\x00\x00\x00\x08" + b"\x00" * 8
    )
    assert list(FrameReader().feed(ignored + FrameWriter().data(1, b"x"))) == [DataFrame(1, b"x")]


def bomb():
    packed = zlib.compressobj(zdict=spdy.DICTIONARY)
    block = packed.compress(b"\0" * (10 << 20)) + packed.flush(zlib.Z_SYNC_FLUSH)
    body = b"\0\0\0\1" + b"\0" * 6 + block
    return b"\x80\x03\x00\x01" + len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"\x00\x00\x00\x01\x00\xff\xff\xff", id="a huge frame"),
        pytest.param(b"\x80\x02\x00\x06\x00\x00\x00\x04\x00\x00\x00\x09", id="another version"),
        pytest.param(b"\x80\x03\x00\x01\x00\x00\x00\x02\x00\x00", id="too short"),
        pytest.param(b"\x80\x03\x00\x01\x00\x00\x00\x0e" + b"\0" * 10 + b"junk", id="no headers"),
        pytest.param(bomb(), id="headers that grow"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n" * 100, id="no SPDY"),
    ],
)
def test_malformed_spdy_frame_is_refused(sent):
    with pytest.raises(SpdyError):
        list(FrameReader().feed(sent))
