"""The comparison of two releases of upstream by declaration."""

import os
import shutil

import pytest

from tests.support.processes.go_programs import BUILD_SECONDS
from tools.minors.comparison import changes, groups, read_declarations, report
from tools.minors.owners import read_owners


def test_declaration_that_moves_within_its_package_is_no_change():
    old = {"pkg/a.go": {"Stay": "1", "Move": "2"}, "pkg/b.go": {}}
    new = {"pkg/a.go": {"Stay": "1"}, "pkg/b.go": {"Move": "2"}}
    assert list(changes(old, new)) == []


def test_changed_fake_is_no_change():
    assert list(changes({"pkg/a.go": {"fakeClock.Now": "1", "FakeOne": "1"}}, {})) == []


def test_report_has_largest_group_after_changes_without_owner():
    old = {"pkg/a.go": {"Small": "1", "Gone": "1"}, "pkg/b.go": {"Large": "1\n2\n3"}}
    new = {"pkg/a.go": {"Small": "2"}, "pkg/b.go": {"Large": "4\n5\n6"}, "pkg/c.go": {"New": "1"}}
    owners = read_owners("pkg/a.go: a.py b.py\npkg/b.go: b.py")
    assert list(report(groups(changes(old, new), owners))) == [
        "     1 no owner: add it to tools/minors/owners.yaml",
        "       pkg/c.go",
        "        +1    -0 added    New",
        "",
        "     6 b.py",
        "       pkg/b.go",
        "        +3    -3 changed  Large",
        "",
        "     3 a.py b.py",
        "       pkg/a.go",
        "        +1    -1 changed  Small",
        "        +0    -1 removed  Gone",
        "",
    ]


def test_report_summarizes_absent_rules_by_file():
    owners = read_owners("pkg: {absent: it is off}")
    found = groups(changes({}, {"pkg/a.go": {"One": "1", "Two": "2"}}), owners)
    assert list(report(found)) == ["     2 it is off", "             2 pkg/a.go", ""]


def test_report_has_changed_lines_if_requested():
    old, new = {"pkg/a.go": {"One": "same\nold"}}, {"pkg/a.go": {"One": "same\nnew"}}
    lines = report(groups(changes(old, new), read_owners("pkg: a.py")), diffs=True)
    assert [line.strip() for line in lines][-4:] == ["same", "-old", "+new", ""]


GO = """
package a

// A comment.
const A, B  =   1, 2

func (s *Set[T]) Add(x int) {

	s.n += x // a comment
}
"""
GENERATED = """
package a

func Validate_Pod(ctx any, obj, oldObj *Pod) (errs []error) {
	errs = append(errs, func() (errs []error) {
		if e := validate.Minimum(ctx, op, fldPath, obj, oldObj, 0).MarkShortCircuit(); len(e) != 0 {
			errs = append(errs, e...)
		}
		errs = append(errs, Validate_Spec(ctx, op, fldPath, obj, oldObj)...)
		return
	}(fldPath.Child("spec"))...)
	return errs
}
"""


@pytest.mark.skipif(
    not os.environ.get("MOCKUBE_FULL_SIZE"), reason="Go may compile its libraries for a minute"
)
@pytest.mark.skipif(shutil.which("go") is None, reason="it runs a program in Go")
@pytest.mark.timeout(BUILD_SECONDS)
def test_declarations_are_code_without_comments_and_rules_of_generated_files(tmp_path):
    files = {"a.go": tmp_path / "a.go", "z.go": tmp_path / "zz_generated.validations.go"}
    files["a.go"].write_text(GO)
    files["z.go"].write_text(GENERATED)
    found = read_declarations(files)
    assert found["a.go"] == {
        "A, B": "const A, B = 1, 2",
        "Set.Add": "func (s *Set[T]) Add(x int) {\n\ts.n += x\n}",
    }
    rules = ["func Validate_Pod", "validate.Minimum(, 0)", "Validate_Spec()", 'fldPath.Child("spec")']
    assert sorted(found["z.go"]["Validate_Pod"].split("\n")) == sorted(rules)
