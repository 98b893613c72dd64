"""`make explorer`: its list of mutations. No controller is explored."""

import ast

import pytest

from judges.explorer.mutants import Mutation, mutated_source, read_mutations, read_scenarios
from mockube.controller_manager.catalog import NAMES
from mockube.exploration.scenario import read_scenario
from tests.support.processes.process import ROOT

MUTATIONS = read_mutations()


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_names_a_line_that_exists_once(name):
    mutation = MUTATIONS[name]
    source = (ROOT / mutation.file).read_text()
    mutated = mutated_source(mutation, source)
    ast.parse(mutated)
    assert mutated != source
    assert mutation.scenario in read_scenarios()


@pytest.mark.parametrize("name", read_scenarios())
def test_scenario_names_a_controller_and_is_valid(name):
    fields = dict(read_scenarios()[name])
    assert fields.pop("controller") in NAMES
    assert read_scenario(fields, ROOT).act


@pytest.mark.parametrize("source", [pytest.param("", id="none"), pytest.param("a\na\n", id="two")])
def test_mutation_without_its_line_is_refused(source):
    mutation = Mutation(file="a.py", line="a", replacement="b", why="it matters", scenario="one")
    with pytest.raises(ValueError, match=r"a\.py has [02] times: a"):
        mutated_source(mutation, source)
