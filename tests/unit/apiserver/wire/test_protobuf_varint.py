import pytest

from mockube.apiserver.wire.protobuf.varint import (
    FIXED32,
    FIXED64,
    GROUP,
    LENGTH,
    VARINT,
    ProtobufError,
    read_parts,
    read_payload,
    read_varint,
    skip,
    tag_of,
    varint,
    with_length,
)


@pytest.mark.parametrize(
    ("number", "written"),
    [
        pytest.param(0, b"\x00", id="zero"),
        pytest.param(127, b"\x7f", id="the last of one byte"),
        pytest.param(128, b"\x80\x01", id="the first of two"),
        pytest.param(16_383, b"\xff\x7f", id="the last of two"),
        pytest.param(16_384, b"\x80\x80\x01", id="the first of three"),
        pytest.param(2**64 - 1, b"\xff" * 9 + b"\x01", id="the largest"),
    ],
)
def test_varints_are_decoded(number, written):
    assert varint(number) == written
    assert read_varint(b"before" + written + b"after", 6) == (number, 6 + len(written))


def test_unterminated_varint_is_refused():
    with pytest.raises(ProtobufError, match="integer overflow"):
        read_varint(b"\x80" * 11, 0)


def test_payload_beyond_data_is_refused():
    assert read_payload(with_length(b"abc"), 0) == (b"abc", 4)
    with pytest.raises(ProtobufError, match="unexpected EOF"):
        read_payload(b"\x04abc", 0)


@pytest.mark.parametrize(
    ("wire_type", "value"),
    [
        pytest.param(VARINT, b"\x80\x01", id="a number"),
        pytest.param(FIXED64, b"12345678", id="eight bytes"),
        pytest.param(LENGTH, b"\x03abc", id="a payload"),
        pytest.param(FIXED32, b"1234", id="four bytes"),
    ],
)
def test_value_is_skipped(wire_type, value):
    assert skip(value + b"after", 0, tag_of(9, wire_type)) == len(value)


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        pytest.param(tag_of(0, LENGTH), "illegal tag 0", id="no number"),
        pytest.param(tag_of(9, GROUP), "illegal wireType 3", id="a group"),
        pytest.param(tag_of(9, 7), "illegal wireType 7", id="no such wire type"),
        pytest.param(tag_of(9, FIXED64), "unexpected EOF", id="too short"),
    ],
)
def test_unskippable_value_is_refused(tag, message):
    with pytest.raises(ProtobufError, match=message):
        skip(b"\x01", 0, tag)


def test_parts_are_read_by_number_last_wins():
    assert read_parts(b"\x0a\x01a" + b"\x18\x05" + b"\x12\x01b" + b"\x0a\x01c") == {1: b"c", 2: b"b"}
