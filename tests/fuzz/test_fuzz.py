"""A short, reproducible part of the fuzz, and every case that was a fault once. `make fuzz` runs the whole."""

from types import SimpleNamespace

import orjson
import pytest

from tests.fuzz import engine
from tests.fuzz.targets import TARGETS
from tests.support.hostile import hostile_bodies

SEED = 1


def _finding_text(finding):
    return f"{finding.signature}\n{orjson.dumps(finding.case).decode()[:2000]}\n{finding.detail}"


@pytest.mark.parametrize("name", list(TARGETS))
def test_short_fuzzing_finds_nothing(name):
    with engine.Runner(TARGETS[name], SEED) as runner:
        runner.run(examples=TARGETS[name].examples)
    findings = runner.figures.findings.values()
    assert not findings, "\n".join(map(_finding_text, findings))


@pytest.mark.parametrize("name", sorted({name for name, _ in engine.corpus_cases()}))
def test_corpus_finds_no_fault(name):
    with engine.Runner(TARGETS[name], SEED) as runner:
        for target, path in engine.corpus_cases():
            if target == name:
                finding = runner.replay(engine.load(path))
                assert finding is None, f"{path.name}: {_finding_text(finding)}"


def test_fault_is_found_and_minimised():
    def check(case):
        assert "x" not in case
        return "read"

    target = engine.Target(
        name="planted", generate=lambda random: "a" * 50 + random.choice("xyz") + "b" * 50, check=check
    )
    with engine.Runner(target, SEED) as runner:
        runner.run(examples=50)
    (finding,) = runner.figures.findings.values()
    assert (finding.case, finding.count > 1) == ("x", True)


def test_same_seed_makes_same_cases():
    made = []
    for _ in range(2):
        cases = []
        target = TARGETS["label-selectors"]
        # A slow case is checked again, so the checks depend on the speed of the machine.
        with engine.Runner(target, SEED, before=lambda _, text, cases=cases: cases.append(text)) as runner:
            runner.run(examples=50)
        made.append(cases)
    assert made[0] == made[1]


def test_repeated_duplication_of_a_part_is_limited():
    largest = SimpleNamespace(choice=max)
    tree = [["a" * 100]]
    for _ in range(6):
        tree = [hostile_bodies._duplicate(tree, 0, largest)]
    assert len(orjson.dumps(tree)) < 4 * hostile_bodies.MEGA
