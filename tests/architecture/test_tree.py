"""The whole repository follows the rules. A failure gives file and line; the rule's module has the reason."""

from collections import defaultdict
from dataclasses import dataclass

import pytest

from tests.architecture.rules import (
    authors,
    coroutines,
    docstrings,
    imports,
    kinds,
    libraries,
    module_names,
    public_names,
    stale_names,
    suppressions,
    tasks,
    testing,
    time_and_randomness,
    wiring,
)
from tests.architecture.source import TESTS, TOOLS, Check, module, paths
from tools.packages import CODE, ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    name: str
    check: Check
    folders: tuple[str, ...]


RULES = (
    Rule(name="no code decides by kind", check=kinds.check, folders=CODE),
    Rule(name="every write has an author", check=authors.check, folders=("apiserver",)),
    Rule(name="controllers return plans", check=coroutines.check, folders=("controller_manager", "packs")),
    Rule(name="time and randomness are injected", check=time_and_randomness.check, folders=CODE),
    Rule(name="modules and packages say what they are", check=docstrings.check, folders=(*CODE, *TOOLS)),
    Rule(name="a silenced check is named", check=suppressions.check, folders=(*CODE, *TESTS, *TOOLS)),
    Rule(name="modules have names of their own", check=module_names.check, folders=(*CODE, *TESTS, *TOOLS)),
    Rule(name="imports have one form", check=imports.check, folders=CODE),
    Rule(name="packages have one name", check=imports.check_namespace, folders=(*CODE, *TESTS, *TOOLS)),
    Rule(name="tests of packages import no pack", check=imports.check_packs, folders=TESTS),
    Rule(name="names say what they are", check=public_names.check, folders=(*CODE, "tools")),
    Rule(name="libraries stay in their places", check=libraries.check, folders=CODE),
    Rule(name="tasks are supervised", check=tasks.check, folders=CODE),
    Rule(name="constructors wire objects", check=wiring.check, folders=CODE),
    Rule(name="imported names exist", check=stale_names.check, folders=(*TESTS, *TOOLS, "examples")),
    Rule(name="tests wait for conditions and use fakes", check=testing.check, folders=TESTS),
    Rule(name="tests that measure time are marked", check=testing.check_timed, folders=TESTS),
    Rule(name="tests are named by behaviour", check=testing.check_names, folders=TESTS),
)


@pytest.mark.parametrize("folder", [*CODE, *TESTS, *TOOLS])
def test_tree_keeps_rules(folder):
    """One test for all rules: each file is read and parsed once."""
    violations = defaultdict(list)
    rules = [rule for rule in RULES if folder in rule.folders]
    for path in paths(folder):
        parsed = module(path)
        for rule in rules:
            violations[rule.name] += [f"{path}:{one.line}: {one.message}" for one in rule.check(parsed)]
    broken = {name: lines for name, lines in violations.items() if lines}
    assert not broken, "\n".join(line for name, lines in broken.items() for line in ("", f"{name}:", *lines))


def test_every_module_of_tree_is_checked():
    """Without files every rule would pass."""
    seen = {*paths(*CODE, *TESTS)}
    assert {"etcd/kv.py", "component_base/clock.py", "tests/architecture/test_tree.py"} <= seen


def test_every_exemption_from_the_clock_is_used():
    idle = {path: time_and_randomness.idle_exemptions(module(path)) for path in time_and_randomness.ALLOWED}
    assert not {path: names for path, names in idle.items() if names}


def test_every_place_that_may_start_tasks_does():
    assert not [path for path in tasks.ALLOWED if not list(tasks.starts(module(path)))]


def test_every_file_that_may_assign_functions_does():
    assert not [path for path in wiring.ALLOWED if not list(wiring.assignments(module(path)))]


def test_every_file_that_may_decide_by_kind_does():
    assert not [path for path in kinds.ALLOWED if not list(kinds.decisions(module(path)))]


@pytest.mark.parametrize("runnable", coroutines.RUNNABLES)
def test_every_runnable_that_may_have_coroutines_has_some(runnable):
    of_runnable = [
        path for path in paths("controller_manager") if path.startswith(coroutines.CONTROLLERS + runnable)
    ]
    assert any(list(coroutines.coroutines(module(path))) for path in of_runnable)


@pytest.mark.parametrize("package", CODE)
def test_every_folder_of_a_package_is_a_package(package):
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    missing = [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").exists()]
    assert not missing, f"add an __init__.py with a docstring to {missing}"
