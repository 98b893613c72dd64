"""Which rules of a source can be removed, and that a removed one is missing in the running process."""

import ast
import gc
import logging
import sys
from types import ModuleType

import pytest

from tests.mutations.removal import Removals
from tests.mutations.sites import Site, chosen, edits, sites_of

SOURCE = """
NAMES = ("a", *("b", "c"))
ALL = {"x": NAMES}

class Rules:
    async def is_valid(self, value):
        if value is None:
            self.note()
        return value != 1 and value in NAMES

def yielded(values):
    yield from [each for each in values if each]
    LOG.info("done")
    yield (values or ())

def default(given):
    return given or {}
"""


def names():
    return [edit.name for edit in edits(ast.parse(SOURCE))]


def test_every_condition_operand_call_and_entry_is_a_site():
    assert names() == [
        "Rules.is_valid: `if value is None` never",
        "Rules.is_valid: `if value is None` inverted",
        "Rules.is_valid: without `self.note()`",
        "Rules.is_valid: `return value != 1 and value in NAMES` inverted",
        "Rules.is_valid: `value != 1 and value in NAMES` without and `value != 1`",
        "Rules.is_valid: `value != 1 and value in NAMES` without and `value in NAMES`",
        "yielded: without `(yield from [each for each in values if each])`",
        "yielded: `for … if each` always",
        "yielded: without `(yield (values or ()))`",
        "NAMES: without `'a'`",
        "NAMES: without `'b'`",
        "NAMES: without `'c'`",
        "ALL: without `'x'`",
    ]


def test_table_that_is_read_on_import_is_no_site(tmp_path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/source.py").write_text(SOURCE)
    tables = {site.owner for site in sites_of(tmp_path, "rules") if site.is_table}
    assert tables == {"ALL"}


def test_choice_depends_on_the_seed_and_remains_when_other_sites_come():
    sites = [Site("a.py", str(number), "f", 1, range(1, 2)) for number in range(100)]
    first = chosen(sites, seed=1, count=10)
    assert chosen(sites[::-1], seed=1, count=10) == first
    assert chosen(sites, seed=2, count=10) != first
    assert len({*first} & {*chosen(sites[5:], seed=1, count=10)}) >= 5


@pytest.fixture
def module(tmp_path, monkeypatch):
    file = tmp_path / "rules/source.py"
    file.parent.mkdir()
    file.write_text(SOURCE.replace("ALL = ", "ALL_OF_THEM = "))
    module = ModuleType("tests.rules_of_a_test")
    module.__file__, module.LOG = str(file), logging.getLogger(__name__)
    exec(compile(file.read_text(), str(file), "exec"), vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def remove(tmp_path, name):
    site = next(each for each in sites_of(tmp_path, "rules") if each.name == name)
    Removals(tmp_path).mutant(site).apply()


def test_removed_call_is_missing_in_every_reference_to_its_function(module, tmp_path):
    function = module.yielded
    remove(tmp_path, "yielded: without `(yield from [each for each in values if each])`")
    assert [*function([0, 1])] == [[0, 1]]


def test_objects_are_frozen_after_functions_are_listed(tmp_path):
    """In a run of all tests, each collection of garbage would take seconds."""
    Removals(tmp_path)
    assert gc.get_freeze_count()


def test_removed_entry_is_missing_in_every_module_that_has_the_table(module, tmp_path, monkeypatch):
    other = ModuleType("tests.other_rules_of_a_test")
    other.__file__, other.ALL = module.__file__, module.ALL_OF_THEM
    monkeypatch.setitem(sys.modules, other.__name__, other)
    remove(tmp_path, "ALL_OF_THEM: without `'x'`")
    assert (module.ALL_OF_THEM, other.ALL) == ({}, {})
