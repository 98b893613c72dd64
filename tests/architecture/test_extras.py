"""Extras are distributions of their own, of the version of mockube, and a missing one is named."""

import tomllib

import pytest

from mockube.container_runtime.behavior import not_simulated
from mockube.container_runtime.extras import NODE_PROGRAMS, PROGRAMS, missing_distribution
from tests.architecture.source import settings
from tools.packages import EXTRAS

PROJECTS = {path.name: tomllib.loads((path / "pyproject.toml").read_text())["project"] for path in EXTRAS}
VERSION = settings()["project"]["version"]


@pytest.mark.parametrize("extra", PROJECTS)
def test_extra_has_the_version_of_mockube(extra):
    project = PROJECTS[extra]
    assert (project["name"], project["version"]) == (f"mockube-{extra}", VERSION)
    assert project["dependencies"] == [f"mockube=={VERSION}"]


def test_all_installs_every_extra():
    wanted = [f"mockube-{extra}=={VERSION}" for extra in sorted(PROJECTS)]
    assert settings()["project"]["optional-dependencies"]["all"] == wanted


@pytest.mark.parametrize(
    ("group", "listed"), [("mockube.programs", PROGRAMS), ("mockube.node_programs", NODE_PROGRAMS)]
)
def test_missing_programs_are_named_with_the_distribution_that_has_them(group, listed):
    assert {
        extra: {*project["entry-points"][group]}
        for extra, project in PROJECTS.items()
        if group in project["entry-points"]
    } == listed


@pytest.mark.parametrize("program", ["python3", "/usr/bin/python", "grep", "", "the image x"])
def test_programs_of_installed_extras_are_not_missing(program):
    assert missing_distribution(program) == missing_distribution(program, on_node=True) == ""
    assert "pip" not in not_simulated({"image": "x"}, program, "it ends")
