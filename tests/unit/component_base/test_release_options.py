"""The flag that selects a minor release accepts those that are supported."""

from argparse import ArgumentTypeError

import pytest

from mockube.component_base.release_options import read_minor


@pytest.mark.parametrize(("text", "minor"), [("1.31", "1.31"), ("v1.29", "1.29"), ("1.37", "1.37")])
def test_minor_is_parsed(text, minor):
    assert read_minor(text) == minor


@pytest.mark.parametrize("text", ["1.28", "1.38", "1.31.4", "", "31"])
def test_unknown_minor_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="is not one of the minor releases"):
        read_minor(text)
