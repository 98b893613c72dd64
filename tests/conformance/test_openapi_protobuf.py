"""OpenAPI 3 in protobuf is what a real server returns, apart from the form of YAML in it."""

import base64
import lzma
from pathlib import Path

import orjson
import pytest
import yaml

from mockube.apiserver.wire.protobuf.varint import (
    FIXED64,
    FIXED64_SIZE,
    LENGTH,
    VARINT,
    read_payload,
    read_varint,
)
from tests.conformance.test_openapi import DOCUMENTS, WITH_CUSTOMS

RECORDED = orjson.loads(
    lzma.decompress((Path(__file__).parent / "golden/openapi/protobuf.json.xz").read_bytes())
)


def fields(data):
    """Return the fields of a message: number, wire type, and number or bytes; an error for other bytes."""
    found, position = [], 0
    while position < len(data):
        tag, position = read_varint(data, position)
        if tag & 7 == VARINT:
            value, position = read_varint(data, position)
        elif tag & 7 == LENGTH:
            value, position = read_payload(data, position)
        elif tag & 7 == FIXED64:
            value, position = data[position : position + FIXED64_SIZE], position + FIXED64_SIZE
        else:
            raise ValueError(f"unused wire type {tag & 7}")
        found.append((tag >> 3, tag & 7, value))
    return found


def assert_equal(own, real, path=""):
    """Compare messages field by field; a text that differs is the same YAML."""
    if own == real:
        return
    own_fields, real_fields = fields_or_none(own), fields_or_none(real)
    if own_fields is None or real_fields is None:
        # Scalars are compared as texts: PyYAML takes `no` for a boolean, Go does not.
        assert yaml.load(own, yaml.BaseLoader) == yaml.load(real, yaml.BaseLoader), path
        return
    heads = [[field[:2] for field in each] for each in (own_fields, real_fields)]
    assert heads[0] == heads[1], path
    for (number, kind, value), (_, _, other) in zip(own_fields, real_fields, strict=True):
        if kind == LENGTH:
            assert_equal(value, other, f"{path}.{number}")
        else:
            assert value == other, f"{path}.{number}"


def fields_or_none(data):
    try:
        return fields(data)
    except (IndexError, ValueError):
        return None


@pytest.mark.parametrize("folder", sorted(RECORDED))
def test_openapi_v3_in_protobuf_matches_recording(folder):
    documents = DOCUMENTS if folder in DOCUMENTS.folders else WITH_CUSTOMS
    text = documents.v3(folder)
    encoded = documents.v3(folder, protobuf=True)
    assert encoded.digest == text.digest
    assert_equal(encoded.body, base64.b64decode(RECORDED[folder]))
