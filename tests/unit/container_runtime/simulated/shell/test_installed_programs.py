"""Programs of other distributions: each is found by its entry point, and imported when it is called."""

from importlib.metadata import EntryPoint

import pytest

from mockube.container_runtime.simulated.shell.process import Host, UnknownProgram, write_text
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.programs.installed_programs import (
    InstalledPrograms,
    LayeredPrograms,
)
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.shell_scripts import NOW, run

MODULE = """
from mockube.container_runtime.simulated.shell.process import write_text

def greet(process):
    yield write_text("hello\\n")
    return 3

NUMBER = 1
"""


def own(process):
    yield write_text("own\n")
    return 0


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """The programs of a distribution with good and bad entry points."""
    (tmp_path / "company_programs.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    values = {
        "greet": "company_programs:greet",
        "sh": "company_programs:greet",
        "number": "company_programs:NUMBER",
        "missing": "company_programs:absent",
        "broken": "no_such_module:greet",
    }
    groups = {"group": {name: EntryPoint(name, value, "group") for name, value in values.items()}}
    return InstalledPrograms("group", groups.__getitem__)


def test_program_of_an_entry_point_is_the_object_that_it_names(programs):
    assert programs["greet"].__module__ == "company_programs"
    assert programs["greet"] is programs["greet"]


def test_all_names_are_known_before_an_import(programs):
    assert sorted(programs) == ["broken", "greet", "missing", "number", "sh"]
    assert len(programs) == 5
    assert "broken" in programs
    assert "cat" not in programs
    assert programs.get("cat") is None


def test_first_layer_with_a_name_has_its_program(programs):
    assert LayeredPrograms({"sh": own}, programs)["sh"] is own
    assert LayeredPrograms(programs, {"sh": own})["sh"] is programs["greet"]
    layers = LayeredPrograms({"sh": own, "other": own}, programs)
    assert sorted(layers) == ["broken", "greet", "missing", "number", "other", "sh"]
    assert len(layers) == 6
    assert "other" in layers
    assert layers.get("cat") is None


def test_own_programs_of_containers_come_before_those_of_entry_points():
    assert PROGRAMS["sh"].__module__.startswith("mockube.container_runtime.")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("number", "it is a int, not a function"),
        ("missing", "AttributeError: module 'company_programs' has no attribute 'absent'"),
        ("broken", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_entry_point_that_cannot_be_used_is_a_program_that_is_not_simulated(programs, name, reason):
    with pytest.raises(UnknownProgram) as raised:
        programs[name]
    assert str(raised.value).startswith(f"{name}, whose entry point ")
    assert reason in str(raised.value)


@pytest.mark.parametrize("command", ["greet", "/usr/bin/greet", "g=gre; ${g}et", "env greet"])
def test_shell_calls_a_program_of_an_entry_point(programs, command):
    host = Host(
        hostname="pod",
        files=FileSystem(),
        now=lambda: NOW,
        programs=LayeredPrograms(PROGRAMS, programs),
    )
    stdout, *_ = run("sh", "-c", f"{command}; echo $?", host=host)
    assert stdout == "hello\n3\n"
