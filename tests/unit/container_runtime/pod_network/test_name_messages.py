"""Queries and answers of the cluster's name server, on the wire."""

import struct

import pytest

from mockube.container_runtime.pod_network.decisions import Names
from mockube.container_runtime.pod_network.name_messages import (
    InvalidAnswer,
    InvalidQuery,
    encode_answer,
    encode_answer_of_target,
    encode_failure,
    encode_target_query,
    parse_query,
)

NAME = b"\x03web\x07default\x03svc\x07cluster\x05local\x00"


def query(name=NAME, kind=1, flags=0x100, additional=b""):
    header = struct.pack("!HHHHHH", 99, flags, 1, 0, 0, int(bool(additional)))
    return header + name + struct.pack("!HH", kind, 1) + additional


def header(answer):
    return struct.unpack_from("!HHHHHH", answer)


def test_query_is_parsed():
    parsed = parse_query(query())
    assert (parsed.number, parsed.name, parsed.record_type, parsed.size) == (
        99,
        "web.default.svc.cluster.local",
        "A",
        512,
    )
    edns = b"\x00" + struct.pack("!HHIH", 41, 1232, 0, 0)
    assert parse_query(query(additional=edns)).size == 1232
    assert not parse_query(query(kind=99)).record_type


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00" * 11,
        query(flags=0x8000),
        query(b"\xc0\x0c"),
        query(b"\x03we"),
        query(b"\x01\xff\x00"),
        query()[:-1],
    ],
)
def test_invalid_query_is_refused(data):
    with pytest.raises(InvalidQuery):
        parse_query(data)


@pytest.mark.parametrize(
    ("record", "data"),
    [
        (("web", "A", "10.0.0.1"), b"\x0a\x00\x00\x01"),
        (("web", "AAAA", "fd00::1"), b"\xfd" + bytes(14) + b"\x01"),
        (("web", "CNAME", "a.b."), b"\x01a\x01b\x00"),
        (("web", "SRV", "0 100 80 a."), b"\x00\x00\x00\x64\x00\x50\x01a\x00"),
        (("web", "TXT", "1.1.0"), b"\x051.1.0"),
    ],
)
def test_records_are_encoded(record, data):
    answer = encode_answer(parse_query(query()), Names(exists=True, records=[record]))
    number, flags, questions, answers, _, _ = header(answer)
    assert (number, flags & 0x8000, flags & 0x100, flags & 15, questions, answers) == (
        99,
        0x8000,
        0x100,
        0,
        1,
        1,
    )
    assert answer.endswith(struct.pack("!H", len(data)) + data)


def test_name_that_does_not_exist_and_failure():
    parsed = parse_query(query())
    assert header(encode_answer(parsed, Names(exists=False)))[1] & 15 == 3
    assert header(encode_failure(parsed))[1] & 15 == 2


def test_long_datagram_is_truncated():
    records = [("web.default.svc.cluster.local", "A", f"10.0.0.{n}") for n in range(50)]
    names = Names(exists=True, records=records)
    truncated = encode_answer(parse_query(query()), names, is_datagram=True)
    assert header(truncated)[1] & 0x200
    assert len(truncated) <= 512
    assert header(encode_answer(parse_query(query()), names))[3] == 50


ALIAS = ("web.default.svc.cluster.local", "CNAME", "db.example.")
TARGET = b"\x02db\x07example\x00"
"""At byte 12 of an answer, and its last label at 15."""


def record(value, kind, name=b"\xc0\x0c"):
    return name + struct.pack("!HHIH", kind, 1, 60, len(value)) + value


def answer_of_machine(*records, flags=0x8180, kind=1):
    header = struct.pack("!HHHHHH", 99, flags, 1, len(records), 0, 0)
    return header + TARGET + struct.pack("!HH", kind, 1) + b"".join(records)


def test_query_for_target_of_alias_keeps_number_and_type():
    parsed = parse_query(encode_target_query(parse_query(query(kind=15)), "db.example"))
    assert (parsed.number, parsed.flags, parsed.name, parsed.kind) == (99, 0x100, "db.example", 15)


@pytest.mark.parametrize(
    ("kind", "value", "whole"),
    [
        (1, b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x01"),
        (5, b"\x01a\xc0\x0f", b"\x01a\x07example\x00"),
        (15, b"\x00\x05\xc0\x0c", b"\x00\x05" + TARGET),
        (33, b"\x00\x00\x00\x64\x00\x50\xc0\x0c", b"\x00\x00\x00\x64\x00\x50" + TARGET),
        (6, b"\xc0\x0c\x01a\x00" + bytes(20), TARGET + b"\x01a\x00" + bytes(20)),
    ],
    ids=["A", "CNAME", "MX", "SRV", "SOA"],
)
def test_answer_of_target_follows_the_alias_with_whole_names(kind, value, whole):
    machine = answer_of_machine(record(value, kind))
    answer = encode_answer_of_target(parse_query(query()), [ALIAS], machine)
    assert header(answer)[2:] == (1, 2, 0, 0)
    assert answer[12:].startswith(NAME + struct.pack("!HH", 1, 1) + NAME)
    assert answer.endswith(record(whole, kind, TARGET))


def test_target_without_records_leaves_the_alias_and_the_code():
    answer = encode_answer_of_target(parse_query(query()), [ALIAS], answer_of_machine(flags=0x8183))
    assert (header(answer)[1] & 15, header(answer)[3]) == (3, 1)
    assert answer.endswith(TARGET)


def test_truncated_or_long_answer_of_target_is_truncated():
    many = answer_of_machine(*[record(bytes(4), 1)] * 30)
    for machine in (many, answer_of_machine(flags=0x8380)):
        answer = encode_answer_of_target(parse_query(query()), [ALIAS], machine, is_datagram=True)
        assert header(answer)[1] & 0x200
        assert len(answer) <= 512
    assert header(encode_answer_of_target(parse_query(query()), [ALIAS], many))[3] == 31


@pytest.mark.parametrize(
    "data",
    [
        b"",
        answer_of_machine(record(bytes(4), 1))[:-1],
        answer_of_machine(record(b"", 1, b"\xc0\xff")),
        answer_of_machine(record(b"\x01a\xc0\x25", 5)),
        answer_of_machine(record(b"\x80a\x00", 5)),
    ],
    ids=["empty", "too short", "place ahead", "endless name", "label of another kind"],
)
def test_invalid_answer_of_target_is_refused(data):
    with pytest.raises(InvalidAnswer):
        encode_answer_of_target(parse_query(query()), [ALIAS], data)
