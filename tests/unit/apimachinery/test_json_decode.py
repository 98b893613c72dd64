"""A text with many objects is decoded like others, and refused like others."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery import json_decode
from mockube.apimachinery.json_decode import MAX_CONTAINERS_PER_CALL, decode

BLANKS = st.sampled_from(["", "", " ", "\n\t\r "])
SCALARS = st.sampled_from(
    ["1", "-1.5e3", "true", "null", '"a"', '""', '"]{"', '"\\"["', '"\\\\"', '"\u00e9,"']
)
KEYS = st.sampled_from(['"a"', '"b"', '"c\\n"', '"d,:"', '""'])


@st.composite
def array(draw, values):
    items = [f"{draw(BLANKS)}{item}{draw(BLANKS)}" for item in draw(st.lists(values, max_size=9))]
    return f"[{','.join(items) or draw(BLANKS)}]"


@st.composite
def mapping(draw, values):
    members = [
        f"{draw(BLANKS)}{draw(KEYS)}{draw(BLANKS)}:{draw(BLANKS)}{value}{draw(BLANKS)}"
        for value in draw(st.lists(values, max_size=9))
    ]
    return f"{{{','.join(members) or draw(BLANKS)}}}"


TEXTS = st.recursive(SCALARS, lambda values: array(values) | mapping(values), max_leaves=40)
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True), st.sampled_from(["", *'[]{},:"\\ 1n', "\0", "\xff"]), st.booleans()
    ),
    max_size=3,
)


def result(decoder, text):
    try:
        return orjson.dumps(decoder(text))
    except orjson.JSONDecodeError:
        return "refused"


@pytest.fixture(params=[0, 1, 3, 10], scope="module")
def many(request):
    """How many containers a piece has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_decode, "MAX_CONTAINERS_PER_CALL", request.param)
        yield request.param


@given(text=TEXTS, before=BLANKS, after=BLANKS)
def test_pieces_are_decoded_like_the_whole(many, text, before, after):
    data = f"{before}{text}{after}".encode()
    assert result(decode, data) == result(orjson.loads, data) != "refused"


@given(text=TEXTS, changes=CHANGES)
def test_changed_text_is_refused_if_orjson_refuses_it(many, text, changes):
    for place, inserted, replaces in changes:
        position = int(place * len(text))
        text = text[:position] + inserted + text[position + replaces :]
    data = text.encode("latin-1", "replace")
    assert result(decode, data) == result(orjson.loads, data)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":[%b]}' % b",".join([b"[]"] * (4 * MAX_CONTAINERS_PER_CALL)),
        b'{"a":{%b}}' % b",".join(b'"%d":{}' % number for number in range(4 * MAX_CONTAINERS_PER_CALL)),
        b'[%b,{"last":1}]' % b",".join([b'{"a":[{},[0]]}'] * (4 * MAX_CONTAINERS_PER_CALL)),
        b'{"a":[],"b":[%b],"a":[%b]}'
        % (
            b",".join([b"[]"] * (2 * MAX_CONTAINERS_PER_CALL)),
            b",".join([b"{}"] * (2 * MAX_CONTAINERS_PER_CALL)),
        ),
    ],
    ids=["an array", "an object", "objects", "the same key twice"],
)
def test_no_call_decodes_more_than_two_pieces(text, monkeypatch):
    whole, loads, counts = orjson.loads(text), orjson.loads, []

    def loads_and_counts(piece):
        counts.append(piece.count(b"[") + piece.count(b"{"))
        return loads(piece)

    monkeypatch.setattr(orjson, "loads", loads_and_counts)
    assert orjson.dumps(decode(text)) == orjson.dumps(whole)
    assert sum(counts) >= 4 * MAX_CONTAINERS_PER_CALL - len(counts)
    assert max(counts) <= 2 * MAX_CONTAINERS_PER_CALL


def test_brackets_in_a_string_are_not_counted_as_objects():
    assert decode(b'"%b"' % (b"[" * (2 * MAX_CONTAINERS_PER_CALL))) == "[" * (2 * MAX_CONTAINERS_PER_CALL)
