"""docs/fidelity: its data is complete and true as far as the code and the tests show, and its pages are made from it."""

import re
from collections import Counter

import msgspec
import pytest
import yaml

from judges.e2e.__main__ import read_failing, read_passing
from mockube.apimachinery.schema.minors import NEWEST
from mockube.apiserver.admission.chain import PLUGINS
from mockube.apiserver.config.features import IMPLEMENTED_GATES
from mockube.controller_manager.config.selection import DISABLED_UPSTREAM, UNIMPLEMENTED
from tests.architecture.documents import anchors
from tests.support.recorded.recordings import COUNTS, DIFFERENCES
from tools.fidelity_pages import FOLDER, pages, problems, program_text, read_area, read_areas
from tools.packages import ROOT

OVERVIEW = (ROOT / "docs/fidelity.md").read_text()
THIS = "tests/docs/test_fidelity.py"
ENTRY = {"subject": "x", "status": "same"}


def area(*entries, **fields):
    return yaml.safe_dump({"title": "A", "sections": [{"title": "S", "entries": list(entries), **fields}]})


def found_in(text, source=""):
    return [problem.rpartition(": x: ")[2] for problem in problems({"a": read_area(text)}, source)]


def test_data_has_no_problems():
    assert list(problems(read_areas(), program_text())) == []


def test_pages_are_current():
    expected = pages()
    found = {path: path.read_text() for path in FOLDER.glob("*.md")}
    assert sorted(found) == sorted(expected)
    assert found == expected, "generate them: make fidelity"


@pytest.mark.parametrize(
    "text",
    [
        area(ENTRY | {"why": "y"}),
        area(ENTRY | {"status": "similar"}),
        area(ENTRY | {"here": ""}),
        area(ENTRY | {"here": " y"}),
        area(ENTRY | {"here": "two\nlines"}),
        area({"status": "same"}),
        area({"subject": "x"}),
        area(ENTRY, notes="y"),
        area(ENTRY, text=" "),
        area(ENTRY, generated="sessions"),
        "title: A\ntext: y\nkinds: []\n",
        "",
    ],
)
def test_data_of_another_shape_is_refused(text):
    with pytest.raises(msgspec.ValidationError):
        read_area(text)


def test_field_that_occurs_twice_is_refused():
    with pytest.raises(yaml.constructor.ConstructorError, match="title occurs twice"):
        read_area("title: A\ntitle: B\n")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"status": "different"}, "here: does not say how it differs"),
        ({"status": "missing"}, "here: does not say how it differs"),
        ({"since": "1.2"}, "since: 1.2 is no minor release"),
        ({"message": "y"}, "message: refuses what is the same"),
        ({"status": "missing", "here": "y", "message": "z"}, "message: the program has no 'z'"),
        ({"status": "missing", "here": "y", "message": "y … z"}, "message: the program has no 'y … z'"),
        ({"tests": [THIS, THIS]}, f"tests: {THIS} occurs twice"),
        ({"tests": ["tests/docs/test_gone.py"]}, "tests: tests/docs/test_gone.py does not exist"),
        ({"tests": [f"{THIS}::test_gone"]}, f"tests: {THIS}::test_gone does not exist"),
        ({"tests": ["tools/setup.sh"]}, "tests: tools/setup.sh does not exist"),
    ],
)
def test_wrong_entry_is_a_problem(entry, problem):
    assert found_in(area(ENTRY | entry), source="y") == [problem]


def test_complete_entry_is_no_problem():
    entry = {
        "status": "missing",
        "here": "y",
        "message": "no x",
        "since": "1.30",
        "tests": [f"{THIS}::found_in"],
    }
    assert found_in(area(ENTRY | entry), source="there is no x here") == []


def test_entry_and_section_that_occur_twice_are_problems():
    assert found_in(area(ENTRY, ENTRY)) == ["also in a: S"]
    sections = [
        {"title": title, "entries": [{"subject": title, "status": "same"}]} for title in ("S s", "S, s")
    ]
    twice = yaml.safe_dump({"title": "A", "sections": sections})
    assert found_in(twice) == ["a: two sections have the anchor s-s"]


def test_empty_area_and_section_are_problems():
    assert found_in("title: A\n") == ["a: nothing in it"]
    assert found_in(area()) == ["a: S: no entries"]


def test_missing_controllers_are_those_of_manager():
    sections = {section.title: section for section in read_areas()["controller-manager"].sections}
    entries = sections["Missing controllers"].entries
    names = [name for entry in entries for name in re.findall(r"`([a-z-]+-controller)`", entry.subject)]
    assert Counter(names) == Counter(DISABLED_UPSTREAM.keys() | UNIMPLEMENTED)


def test_overview_links_to_each_page():
    linked = set(re.findall(r"\]\(fidelity/([a-z-]+\.md)", OVERVIEW))
    assert linked == {path.name for path in pages()}


def test_overview_has_current_figures():
    total, different = (
        sum(COUNTS.values()),
        sum(len(ids) for by in DIFFERENCES.values() for ids in by.values()),
    )
    assert f"{total - different:,} of {total:,} are equal" in OVERVIEW
    passing, failing = (
        read_passing(NEWEST),
        [spec for specs in read_failing(NEWEST).values() for spec in specs],
    )
    assert f"{len(passing)} of {len(passing) + len(failing)} specs pass" in OVERVIEW


def test_overview_is_short():
    assert len(OVERVIEW.split()) < 900


def test_pages_have_the_anchors_of_their_index():
    known = {f"{path.name}#{heading}" for path, text in pages().items() for heading in anchors(text)}
    assert set(re.findall(r"\(([a-z-]+\.md#[^)]+)\)", pages()[FOLDER / "names.md"])) <= known


def entry(area, start):
    entries = [entry for section in read_areas()[area].sections for entry in section.entries]
    (found,) = [entry for entry in entries if entry.subject.startswith(start)]
    return found


def test_gates_with_an_effect_are_those_of_server():
    named = set(re.findall(r"\w+", entry("server", "`--feature-gates` turns").here))
    assert named >= IMPLEMENTED_GATES


def test_each_admission_plugin_is_named():
    subjects = " ".join(e.subject for section in read_areas()["admission"].sections for e in section.entries)
    assert [plugin.__name__ for plugin in PLUGINS if plugin.__name__ not in subjects] == []
