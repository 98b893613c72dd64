"""pyproject.toml names our packages in several places, for several tools; they agree."""

import pytest

from tests.architecture.source import PACKAGES, ROOT, settings


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("mypy", ("mypy", "packages")),
        ("import-linter", ("importlinter", "root_packages")),
        ("coverage", ("coverage", "run", "source_pkgs")),
    ],
)
def test_every_tool_looks_at_every_package(tool, path):
    table = settings()["tool"]
    for key in path:
        table = table[key]
    assert sorted(table) == sorted(PACKAGES), tool


def test_every_package_is_typed_for_its_users():
    assert [package for package in PACKAGES if not (ROOT / package / "py.typed").exists()] == []
