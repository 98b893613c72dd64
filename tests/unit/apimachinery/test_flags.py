"""Parsers of flag values, and the errors for invalid values."""

from argparse import ArgumentTypeError

import pytest

from mockube.apimachinery.flags import labels


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("disk=ssd", (("disk", "ssd"),)),
        ("example.com/tier=front, empty=", (("example.com/tier", "front"), ("empty", ""))),
        ("", ()),
    ],
)
def test_label_flag_is_parsed(text, pairs):
    assert labels(text) == pairs


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("disk", '"disk" is not a label: it must be KEY=VALUE'),
        ("=ssd", '"=ssd" is not a label: '),
        ("disk=s s", '"disk=s s" is not a label: a valid label must be'),
        ("a/b/c=d", '"a/b/c=d" is not a label: '),
    ],
)
def test_invalid_label_flag_is_refused(text, says):
    with pytest.raises(ArgumentTypeError, match="^" + says.replace("(", r"\(")):
        labels(text)
