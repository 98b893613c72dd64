"""Extras are distributions of their own, of the version of mockube, and a missing one is named."""

import tomllib
from importlib.metadata import EntryPoint

import pytest

from mockube.container_runtime.behavior import not_simulated
from mockube.container_runtime.extras import NODE_PROGRAMS, PROGRAMS, missing_distribution
from tests.architecture.source import settings
from tools.packages import EXTRAS

PROJECTS = {path.name: tomllib.loads((path / "pyproject.toml").read_text())["project"] for path in EXTRAS}
ENTRY_POINTS = {extra: project["entry-points"] for extra, project in PROJECTS.items()}
VERSION = settings()["project"]["version"]


@pytest.mark.parametrize("extra", PROJECTS)
def test_extra_has_the_version_of_mockube(extra):
    project = PROJECTS[extra]
    assert (project["name"], project["version"]) == (f"mockube-{extra}", VERSION)
    assert project["dependencies"] == [f"mockube=={VERSION}"]


def test_all_installs_every_extra():
    wanted = [f"mockube-{extra}=={VERSION}" for extra in sorted(PROJECTS)]
    assert settings()["project"]["optional-dependencies"]["all"] == wanted


def programs_of(entry_points):
    """Return the names of the programs of containers that the entry points of an extra add."""
    kinds = entry_points.get("mockube.servers", {}).items()
    servers = [EntryPoint(name, value, "mockube.servers").load() for name, value in kinds]
    return {*entry_points.get("mockube.programs", ()), *(name for kind in servers for name in kind.programs)}


def test_missing_programs_are_named_with_the_distribution_that_has_them():
    of_containers = {extra: programs_of(points) for extra, points in ENTRY_POINTS.items()}
    of_nodes = {extra: {*points.get("mockube.node_programs", ())} for extra, points in ENTRY_POINTS.items()}
    assert {extra: names for extra, names in of_containers.items() if names} == PROGRAMS
    assert {extra: names for extra, names in of_nodes.items() if names} == NODE_PROGRAMS


@pytest.mark.parametrize("program", ["python3", "/usr/bin/python", "nginx", "grep", "", "the image x"])
def test_programs_of_installed_extras_are_not_missing(program):
    assert missing_distribution(program) == missing_distribution(program, on_node=True) == ""
    assert "pip" not in not_simulated({"image": "x"}, program, "it ends")
