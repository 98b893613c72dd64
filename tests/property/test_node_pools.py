"""Any text is read as pools, or refused in one line, in time that is proportional to its length."""

from hypothesis import given
from hypothesis import strategies as st

from mockube.kubelet.node_pools.pool import MAX_SIMULATED_NODES, PoolError
from mockube.kubelet.node_pools.reading import read_pools
from mockube.kubelet.node_pools.text import KEYS

WORDS = st.sampled_from(
    [
        *KEYS,
        "example.com/fpga",
        "=",
        ":",
        ",",
        " ",
        "-",
        "4",
        "16Gi",
        "a",
        "NoSchedule",
        "\n",
        "[",
        "{count: 1",
    ]
)
TEXTS = st.one_of(st.text(), st.lists(WORDS, max_size=30).map("".join))


@given(text=TEXTS)
def test_text_is_read_or_refused_in_one_line(text):
    outcome = read(text)
    if isinstance(outcome, PoolError):
        assert str(outcome).isprintable()
    else:
        assert 0 <= outcome.count <= MAX_SIMULATED_NODES
        assert read_pools(outcome.text).pools == outcome.pools


def read(text):
    try:
        return read_pools(text)
    except PoolError as error:
        return error
