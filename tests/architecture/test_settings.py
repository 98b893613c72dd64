"""The packages are in the repository's root, and every tool uses them as `mockube.*` through links."""

import pytest

from tests.architecture.source import settings
from tools.packages import PACKAGES, ROOT

NAMESPACE = "mockube"
INSIDE = sorted({*PACKAGES} - {NAMESPACE})


def test_every_tool_includes_the_namespace():
    tools = settings()["tool"]
    assert tools["mypy"]["packages"] == [NAMESPACE]
    assert tools["importlinter"]["root_package"] == NAMESPACE
    assert tools["coverage"]["run"]["source_pkgs"] == [NAMESPACE]
    assert (ROOT / NAMESPACE / "py.typed").exists()


@pytest.mark.parametrize("package", INSIDE)
def test_package_is_in_namespace_of_checkout_and_wheel(package):
    build = settings()["tool"]["hatch"]["build"]
    assert (ROOT / NAMESPACE / package).readlink().as_posix() == f"../{package}"
    assert build["targets"]["wheel"]["sources"][package] == f"{NAMESPACE}/{package}"
    assert f"/{NAMESPACE}/{package}" in build["exclude"]


def test_nothing_but_packages_and_extras_is_linked():
    links = {path.name for path in (ROOT / NAMESPACE).iterdir() if path.is_symlink()}
    assert sorted(links) == sorted([*INSIDE, "extras"])
