"""The routine for a new minor writes its release into the table of releases."""

import pytest

from tools.minors.gomodules import Release
from tools.minors.new import STEPS, TABLE, with_release

SOURCE = f"""before
{TABLE}    "1.37": "1.37.2",
    "1.36": "1.36.3",
}}
"""


@pytest.mark.parametrize(
    ("minor", "version", "rows"),
    [
        ("1.38", "1.38.0", ['"1.38": "1.38.0"', '"1.37": "1.37.2"', '"1.36": "1.36.3"']),
        ("1.37", "1.37.3", ['"1.37": "1.37.3"', '"1.36": "1.36.3"']),
        ("1.36", "1.36.4", ['"1.37": "1.37.2"', '"1.36": "1.36.4"']),
    ],
)
def test_release_is_added_or_replaces_one_of_its_minor(minor, version, rows):
    lines = with_release(SOURCE, Release(minor, version)).splitlines()
    assert lines == ["before", TABLE.strip(), *(f"    {row}," for row in rows), "}"]


def test_steps_are_described():
    assert all(step.__doc__ for step in STEPS.values())
