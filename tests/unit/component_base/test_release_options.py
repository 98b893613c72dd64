"""The flag that selects a minor release accepts those that are supported."""

from argparse import ArgumentTypeError

import pytest

from mockube.component_base.release_options import read_minor


@pytest.mark.parametrize(
    ("text", "minor"),
    [
        ("1.31", "1.31"),
        ("v1.29", "1.29"),
        ("1.37", "1.37"),
        ("1.36.3", "1.36"),
        ("v1.36.3", "1.36"),
        ("v1.37.2", "1.37"),
    ],
)
def test_minor_is_parsed(text, minor):
    assert read_minor(text) == minor


@pytest.mark.parametrize("text", ["1.28", "1.38", "1.28.3", "", "31", "v", "1", "1.", "latest"])
def test_unknown_minor_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="is not one of the minor releases"):
        read_minor(text)


@pytest.mark.parametrize("text", ["1.36.1", "v1.36.4", "1.36.3-alpha.1", "1.36.3+k3s1", "1.36.", "1.36.3.1"])
def test_other_patch_is_refused_with_the_one_that_is_served(text):
    with pytest.raises(ArgumentTypeError, match=r"is not available: the release of 1\.36 is 1\.36\.3$"):
        read_minor(text)
