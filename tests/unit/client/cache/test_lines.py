from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from mockube.client.cache.reflector import split_lines


async def chunks_of(*chunks):
    for chunk in chunks:
        yield chunk


async def lines_of(*chunks):
    return [line async for batch in split_lines(chunks_of(*chunks)) for line in batch]


async def test_line_may_arrive_in_pieces():
    assert await lines_of(b"a", b"b", b"c\nd\n", b"e", b"\n") == [b"abc", b"d", b"e"]


async def test_truncated_line_is_dropped():
    assert await lines_of(b"whole\n", b"half") == [b"whole"]


@settings(max_examples=50)
@given(
    data=st.lists(st.binary(max_size=5), max_size=10).map(b"\n".join),
    cuts=st.lists(st.integers(0, 60), max_size=10).map(sorted),
)
async def test_lines_are_independent_of_chunks(data, cuts):
    pieces = [data[start:end] for start, end in pairwise([0, *cuts, len(data)])]
    assert await lines_of(*pieces) == data.split(b"\n")[:-1]
