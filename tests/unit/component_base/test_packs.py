"""Packs are found by their entry points; what is wrong with one is reported with its name."""

import re
import subprocess
import sys

import pytest

from mockube.component_base.packs import (
    PackError,
    flags_of_packs,
    load_pack,
    own_pack_names,
    pack_names,
    parts_of,
    selected_packs,
)
from mockube.controller_manager.config.settings import SECTIONS
from tests.support import packs


def test_installed_pack_is_found_by_its_entry_point(pack_folder):
    packs.install(pack_folder, "found_pack", packs.pack_of("", packs.definition()))
    assert [*load_pack("found_pack").definitions()] == [packs.definition()]


def test_unknown_pack_is_reported_with_those_that_are_installed(pack_folder):
    packs.install(pack_folder, "listed_pack", packs.pack_of())
    known = ", ".join(pack_names())
    assert {*own_pack_names(), "listed_pack"} <= {*pack_names()}
    with pytest.raises(PackError, match=f'unknown pack "unicorns", must be one of {known}'):
        load_pack("unicorns")


def test_pack_that_cannot_be_imported_is_reported_with_the_line(pack_folder):
    packs.install(pack_folder, "broken_pack", "import no_such_module\n")
    problem = (
        "pack \"broken_pack\": broken_pack:PACK failed: ModuleNotFoundError: No module named 'no_such_module'"
    )
    with pytest.raises(PackError, match=re.escape(f"{problem} ({pack_folder / 'broken_pack.py'}, line 1)")):
        load_pack("broken_pack")


def test_entry_point_of_another_object_is_refused(pack_folder):
    packs.install(pack_folder, "empty_pack", "PACK = {}\n")
    with pytest.raises(PackError, match='pack "empty_pack": empty_pack:PACK is a dict, not a mockube'):
        load_pack("empty_pack")


def test_two_packs_of_one_name_are_refused(pack_folder):
    for distribution in ("one", "other"):
        packs.add_metadata(pack_folder, distribution, {"twin_pack": f"{distribution}:PACK"})
    problem = 'two packs are named "twin_pack": one:PACK (of one 1.0) and other:PACK (of other 1.0)'
    with pytest.raises(PackError, match=re.escape(problem)):
        load_pack("twin_pack")


def test_error_of_a_function_names_the_pack():
    def fail():
        raise KeyError("x")

    with pytest.raises(
        PackError, match=r"pack \"mine\": controllers failed: KeyError: 'x' \(.*test_packs.py, line \d+\)"
    ):
        parts_of("mine", "controllers", fail)


def test_flag_that_exists_is_refused(pack_folder):
    packs.install(pack_folder, "flags_pack", packs.pack_with_flag("concurrent_job_syncs"))
    with pytest.raises(
        PackError, match='pack "flags_pack": its flag --concurrent-job-syncs is one of the process'
    ):
        flags_of_packs(SECTIONS.values(), ["flags_pack"])


@pytest.mark.parametrize(
    ("arguments", "environment", "selected"),
    [
        pytest.param([], {}, (), id="none"),
        pytest.param(["--packs=a,b", "--packs", "c"], {}, ("a", "b", "c"), id="repeated flag"),
        pytest.param(["--packs=a"], {"SERVER_PACKS": "b, a"}, ("b", "a"), id="variable"),
        pytest.param(["--packs"], {}, (), id="without a value"),
        pytest.param(["--packs-of=a"], {}, (), id="another flag"),
    ],
)
def test_packs_are_selected_before_the_command_line_is_parsed(arguments, environment, selected):
    assert selected_packs(arguments, environment, "SERVER") == selected


def test_own_packs_are_loaded_without_reading_metadata_of_distributions():
    program = (
        "import sys; from mockube.component_base.packs import load_packs, own_pack_names;"
        "load_packs(own_pack_names()); sys.exit('importlib.metadata' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
