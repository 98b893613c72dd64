"""The routine for a new minor writes its release into the table of releases, and refuses releases that it cannot follow."""

import pytest

from tools.minors.gomodules import Release
from tools.minors.new import (
    STEPS,
    TABLE,
    ReleaseError,
    check_in_table,
    check_releases,
    default_since,
    with_release,
)


def release(version):
    return Release(version.partition("-")[0].rpartition(".")[0], version)


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


SERVED = tuple(release(version) for version in ("1.37.2", "1.36.3", "1.35.4"))


@pytest.mark.parametrize(
    ("version", "since"),
    [("1.38.0", "1.37.2"), ("1.38.0-alpha.1", "1.37.2"), ("1.37.3", "1.37.2"), ("1.36.4", "1.36.3")],
)
def test_newer_release_is_compared_with_served_one(version, since):
    chosen = default_since(release(version), SERVED)
    assert chosen.version == since
    check_releases(release(version), chosen, SERVED)


def test_served_release_is_compared_with_named_one():
    check_releases(SERVED[0], SERVED[1], SERVED)


@pytest.mark.parametrize(
    ("version", "problem"),
    [
        ("1.28.0", "1.28.0 is no release of a served minor (1.35 to 1.37) or of the next one"),
        ("1.39.0", "1.39.0 is no release of a served minor (1.35 to 1.37) or of the next one"),
        ("1.37.1", "1.37.1 is older than 1.37.2, which is served already"),
        ("1.37.2-rc.0", "1.37.2-rc.0 is older than 1.37.2, which is served already"),
        ("1.36.2", "1.36.2 is older than 1.36.3, which is served already"),
        (
            "1.37.2",
            "1.37.2 is not newer than 1.37.2; --since names the release that was served before",
        ),
    ],
)
def test_release_that_is_not_newer_is_refused(version, problem):
    with pytest.raises(ReleaseError) as caught:
        check_releases(release(version), default_since(release(version), SERVED), SERVED)
    assert str(caught.value) == problem


def test_releases_are_ordered_by_age():
    versions = [
        "1.9.10",
        "1.38.0-alpha.2",
        "1.38.0-alpha.10",
        "1.38.0-beta.0",
        "1.38.0-rc.1",
        "1.38.0",
        "1.38.1",
    ]
    assert sorted(versions, key=lambda version: release(version).order) == versions


def test_step_needs_release_in_table():
    check_in_table(SOURCE, release("1.36.3"))
    with pytest.raises(ReleaseError, match="--step release adds it"):
        check_in_table(SOURCE, release("1.36.4"))


def test_steps_are_described():
    assert all(step.__doc__ for step in STEPS.values())
