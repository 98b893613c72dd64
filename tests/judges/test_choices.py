"""What every judge does before it begins: it fails if it would judge nothing, and names what this machine lacks."""

import importlib
import sys

import pytest

from judges.e2e.suite import Suite
from mockube.apimachinery.schema import minors
from tools.needed import require_programs


@pytest.mark.parametrize(
    ("judge", "arguments", "text"),
    [
        ("judges.tasks.__main__", (), "no task is named nosuch"),
        ("judges.lessons.__main__", (), "no page is named nosuch"),
        ("judges.explorer.__main__", (), "mutations.yaml has no name with nosuch"),
        ("judges.suites.__main__", (), "suites.yaml has no nosuch"),
        ("judges.operators.__main__", (), "operators.yaml and well_made.yaml have no nosuch"),
        (
            "judges.differential.scheduling_extenders",
            ("--record=none",),
            "no scenario has nosuch in its name",
        ),
    ],
)
def test_judge_of_nothing_fails_with_a_sentence(monkeypatch, judge, arguments, text):
    monkeypatch.setattr(sys, "argv", [judge, "--only", "nosuch", *arguments])
    with pytest.raises(SystemExit, match=text):
        importlib.import_module(judge).main()


def test_focus_that_matches_no_spec_fails_with_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(Suite, "build", lambda _: None)
    monkeypatch.setattr(Suite, "conformance_specs", lambda _: ["[sig-apps] Job should finish [Conformance]"])
    arguments = ["judges.e2e", "--focus=NoSuchSpec", f"--suite={tmp_path}", f"--output={tmp_path}"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit, match="nothing is judged: no conformance spec matches --focus=NoSuchSpec"):
        importlib.import_module("judges.e2e.__main__").main()


def test_specs_of_processes_need_the_programs_of_their_pods(monkeypatch, tmp_path):
    spec = "[sig-api-machinery] AdmissionWebhook should deny pods [Conformance]"
    monkeypatch.setattr(Suite, "build", lambda _: None)
    monkeypatch.setattr(Suite, "conformance_specs", lambda _: [spec])
    monkeypatch.setattr(sys, "argv", ["judges.e2e", f"--suite={tmp_path}", f"--output={tmp_path}"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="this needs nc, curl, dig, nslookup on the PATH"):
        importlib.import_module("judges.e2e.__main__").main()


def test_suite_that_is_not_built_needs_go(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="this needs go on the PATH"):
        Suite(tmp_path, minors.NEWEST).build()


def test_programs_that_are_there_are_enough():
    require_programs("sh")
