"""Every mutant of the server is killed by a unit test that is marked with it, and nearly every one of the other packages by some test."""

import subprocess
import sys
from pathlib import Path

import pytest

from mockube.apiserver.admission.chain import PLUGINS
from tests.mutations.mutants import DANGEROUS, EQUIVALENT, MUTANTS, PERMANENT_PLUGINS
from tests.mutations.package import PACKAGES, SERVER
from tests.support.server.memory_api import running_api

ROOT = Path(__file__).parents[2]
SECONDS = 2400
"""The run-times need most of it when nothing of them is recorded yet."""


def test_tables_name_mutants():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)
    assert {*EQUIVALENT, *DANGEROUS} <= set(names)
    assert not DANGEROUS & EQUIVALENT.keys()


async def test_every_plugin_that_no_flag_disables_has_a_mutant():
    async with running_api("--packs=") as api:
        admission = api.registry.admission
    steps = (*admission._mutating._plugins, *admission._validating._plugins)
    plugins = {type(plugin) for plugin, _ in steps} | {*map(type, admission._authorizing.values())}
    assert {plugin.__name__ for plugin in plugins - {*PLUGINS}} == {*PERMANENT_PLUGINS}


@pytest.mark.release
@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS)
@pytest.mark.parametrize("package", [SERVER, *PACKAGES])
def test_unit_tests_kill_mutants(package):
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutations", "--package", package],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
