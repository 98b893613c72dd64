"""Many items are sorted, encoded and decoded like few, and no single call processes all of them."""

import sys
import weakref
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery import piecewise, tree
from mockube.apimachinery.patch import gofmt, json_merge
from mockube.apimachinery.piecewise import (
    MIN_BYTES_IN_PIECES,
    decode_in_pieces,
    encode_in_pieces,
    encoder_for_size,
    release_in_pieces,
    sorted_in_pieces,
    sorted_items,
)
from tests.support.seeded import source

pytestmark = pytest.mark.thorough

PIECE_SIZE = 64
ENCODED_PIECE_SIZE = 16
MAX_CONTAINERS_PER_CALL = 256
MANY = 3 * PIECE_SIZE + 5


@pytest.fixture(scope="module", autouse=True)
def small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PIECE_SIZE", "ENCODED_PIECE_SIZE", "MAX_CONTAINERS_PER_CALL"):
            patch.setattr(piecewise, name, globals()[name])
        yield


class CountingNumber:
    """A number that counts comparisons."""

    count = 0

    def __init__(self, number):
        self.number = number

    def __lt__(self, other):
        CountingNumber.count += 1
        return self.number < other.number

    def __le__(self, other):
        return self.number <= other.number


def shuffled(size):
    numbers = [*range(size)]
    source(7).shuffle(numbers)
    return numbers


@pytest.mark.parametrize("size", [0, 1, PIECE_SIZE, PIECE_SIZE + 1, MANY])
def test_pieces_are_sorted_like_sorted(size):
    numbers = shuffled(size)
    assert sorted_in_pieces(numbers) == sorted(numbers)
    assert sorted_in_pieces([*range(size)]) == [*range(size)]
    assert sorted_in_pieces(numbers, lambda number: -number) == sorted(numbers, reverse=True)
    assert sorted_in_pieces({*numbers}) == sorted(numbers)


def test_sort_in_pieces_is_stable():
    numbers = shuffled(MANY)
    assert sorted_in_pieces(numbers, lambda number: number % 10) == sorted(
        numbers, key=lambda number: number % 10
    )


class CountedKey(str):
    """A string that counts comparisons."""

    __slots__ = ()

    def __lt__(self, other):
        CountingNumber.count += 1
        return str.__lt__(self, other)

    def __le__(self, other):
        CountingNumber.count += 1
        return str.__le__(self, other)


def most_comparisons(work, value):
    """Return the result of work, and the maximum of comparisons within one call of a C function."""
    begun, maximum = [], 0

    def note(_frame, event, _called):
        nonlocal maximum
        if event == "c_call":
            begun.append(CountingNumber.count)
        elif event in ("c_return", "c_exception") and begun:
            maximum = max(maximum, CountingNumber.count - begun.pop())

    CountingNumber.count = 0
    sys.setprofile(note)
    try:
        result = work(value)
    finally:
        sys.setprofile(None)
    return result, maximum


def test_no_call_compares_all_items():
    ordered, maximum = most_comparisons(sorted_in_pieces, [*map(CountingNumber, shuffled(MANY))])
    assert [item.number for item in ordered] == [*range(MANY)]
    assert 0 < maximum <= PIECE_SIZE * PIECE_SIZE.bit_length()


@pytest.mark.parametrize(
    "work",
    [
        lambda value: [*sorted_items(value)],
        tree.sorted_keys,
        gofmt.format_verb_v,
        gofmt.format_verb_s,
        gofmt.format_go_syntax,
        lambda patch: json_merge.apply({}, patch),
        lambda patch: json_merge.apply({}, {"data": patch}),
    ],
)
def test_no_call_compares_all_keys_of_a_map(work):
    value = {CountedKey(number): "" for number in shuffled(MANY)}
    result, maximum = most_comparisons(work, value)
    assert 0 < maximum <= PIECE_SIZE * PIECE_SIZE.bit_length()
    few = dict.fromkeys([*value][:PIECE_SIZE], "")
    assert [*sorted_items(few)] == sorted(few.items())
    if isinstance(result, dict):
        assert [*(result.get("data") or result)] == sorted(map(str, value))


def test_released_items_are_freed_in_pieces():
    left = []

    class Item:
        def __del__(self):
            left.append(len(items))

    items = [Item() for _ in range(2 * PIECE_SIZE + 1)]
    last = weakref.ref(items[-1])
    release_in_pieces(items)
    assert last() is None
    assert not items
    assert max(map(left.count, {*left})) <= PIECE_SIZE


def test_sort_keys_are_freed_in_pieces():
    freed, during = 0, []

    class Key(CountingNumber):
        def __del__(self):
            nonlocal freed
            freed += 1

    def note(frame, _event, _about):
        if frame.f_code is Key.__del__.__code__:
            return None
        during.append(freed)
        return note

    numbers = shuffled(MANY)
    sys.settrace(note)
    try:
        sorted_in_pieces(numbers, Key)
    finally:
        sys.settrace(None)
    during.append(freed)
    steps = [after - before for before, after in pairwise(during)]
    assert freed == MANY
    assert max(steps) <= PIECE_SIZE


@pytest.mark.parametrize(
    "size", [0, 1, ENCODED_PIECE_SIZE, ENCODED_PIECE_SIZE + 1, 2 * ENCODED_PIECE_SIZE, MANY]
)
@pytest.mark.parametrize("option", [None, orjson.OPT_SORT_KEYS])
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 100])
def test_values_are_encoded_like_by_orjson(size, option, depth):
    items = [{"name": f"\u00e9{number}", "args": [None, 1.5, [], {}, [[]]]} for number in range(size)]
    members = {f'k"{number}': {"b": number, "a": "\u2028"} for number in reversed(range(size))}
    value = {
        "spec": {"b": items, "a": [items, members]},
        "kind": "Pod",
        "data": members,
        "": orjson.Fragment(b"1"),
    }
    assert encode_in_pieces(value, option=option, depth=depth) == orjson.dumps(value, option=option)
    assert encode_in_pieces([value, items], option=option, depth=depth) == orjson.dumps(
        [value, items], option=option
    )


@pytest.mark.parametrize(
    "value", [{"a": "\ud800"}, {"\ud800": [{}]}, {"a": [object()]}, [{"a": {1: []}}], 1 << 70]
)
def test_invalid_value_is_refused_like_by_orjson(value):
    with pytest.raises(TypeError) as expected:
        orjson.dumps(value)
    with pytest.raises(expected.type):
        encode_in_pieces(value)


def test_no_long_part_is_encoded_in_one_call(monkeypatch):
    lengths = []

    def dumps(value, option=None, dumps=orjson.dumps):
        lengths.append(len(value) if isinstance(value, list | dict) else 1)
        return dumps(value, option=option)

    monkeypatch.setattr(orjson, "dumps", dumps)
    encode_in_pieces({"spec": {"a": [1] * MANY, "b": [{str(number): 1 for number in range(MANY)}]}})
    assert max(lengths) == ENCODED_PIECE_SIZE


def test_small_values_are_encoded_in_one_call():
    assert encoder_for_size(MIN_BYTES_IN_PIECES - 1) is orjson.dumps
    assert encoder_for_size(MIN_BYTES_IN_PIECES) is encode_in_pieces


# --- decoding

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


def decoded(decoder, text):
    try:
        return orjson.dumps(decoder(text))
    except orjson.JSONDecodeError:
        return "refused"


@pytest.fixture(params=[0, 1, 3, 10], scope="module")
def many(request):
    """How many containers a piece has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(piecewise, "MAX_CONTAINERS_PER_CALL", request.param)
        yield request.param


@given(text=TEXTS, before=BLANKS, after=BLANKS)
def test_pieces_are_decoded_like_the_whole(many, text, before, after):
    data = f"{before}{text}{after}".encode()
    assert decoded(decode_in_pieces, data) == decoded(orjson.loads, data) != "refused"


@given(text=TEXTS, changes=CHANGES)
def test_changed_text_is_refused_if_orjson_refuses_it(many, text, changes):
    for place, inserted, replaces in changes:
        position = int(place * len(text))
        text = text[:position] + inserted + text[position + replaces :]
    data = text.encode("latin-1", "replace")
    assert decoded(decode_in_pieces, data) == decoded(orjson.loads, data)


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
    assert orjson.dumps(decode_in_pieces(text)) == orjson.dumps(whole)
    assert sum(counts) >= 4 * MAX_CONTAINERS_PER_CALL - len(counts)
    assert max(counts) <= 2 * MAX_CONTAINERS_PER_CALL


def test_brackets_in_a_string_are_not_counted_as_objects():
    assert decode_in_pieces(b'"%b"' % (b"[" * (2 * MAX_CONTAINERS_PER_CALL))) == "[" * (
        2 * MAX_CONTAINERS_PER_CALL
    )
