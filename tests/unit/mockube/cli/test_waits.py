"""Values of `--wait`."""

from argparse import ArgumentTypeError

import pytest

from mockube.cli.up import Wait, read_wait
from mockube.clusters.spec import ReadyCondition


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("30s", Wait(seconds=30.0)),
        ("1m30s", Wait(seconds=90.0)),
        ("nodes", Wait()),
        ("server", Wait(until=ReadyCondition.SERVER)),
        ("server/500ms", Wait(until=ReadyCondition.SERVER, seconds=0.5)),
        ("nodes/2m", Wait(seconds=120.0)),
    ],
)
def test_wait_flag_is_parsed(text, meant):
    assert read_wait(text) == meant


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("soon", "is none of server, nodes, and no time"),
        ("pods/3s", '"pods" is not one of server, nodes'),
        ("server/", "invalid duration"),
    ],
)
def test_invalid_wait_flag_is_refused(text, says):
    with pytest.raises(ArgumentTypeError, match=says):
        read_wait(text)
