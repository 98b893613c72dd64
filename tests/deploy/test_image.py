"""The Dockerfile: its sources exist, packages are pinned by hash, and the image runs as non-root."""

import fnmatch
import re
import tomllib

import pytest

from tests.support.processes.process import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"
INSTRUCTION = re.compile(r"^([A-Z]+)\s+((?:.*\\\n)*.*)$", re.MULTILINE)


def instructions():
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE)
    return [(name, arguments.strip()) for name, arguments in INSTRUCTION.findall(text)]


def arguments(wanted):
    return [arguments for name, arguments in instructions() if name == wanted]


def final_stage():
    everything = instructions()
    last = max(index for index, (name, _) in enumerate(everything) if name == "FROM")
    return everything[last:]


def copy_sources():
    """Return the COPY sources from the checkout."""
    return [source for words in arguments("COPY") if "--from" not in words for source in words.split()[:-1]]


def test_base_image_is_slim_build_argument():
    assert arguments("FROM") == ["${BUILDER} AS builder", "${BASE}"]
    defaults = dict(argument.split("=", 1) for argument in arguments("ARG"))
    assert defaults["BUILDER"] == "${BASE}"
    image, _, tag = defaults["BASE"].partition(":")
    assert (image, "slim" in tag, "latest" in tag) == ("python", True, False)


@pytest.mark.parametrize("source", copy_sources())
def test_copied_sources_exist_and_are_not_ignored(source):
    assert (ROOT / source).exists()
    ignored = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        if line and not line.startswith("#") and fnmatch.fnmatch(source.rstrip("/"), pattern):
            ignored = not line.startswith("!")
    assert not ignored


def test_image_has_every_package():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {f"{package}/" for package in (*wheel["packages"], "extras")} - {*copy_sources()} == set()


def test_image_runs_as_numeric_non_root_user():
    users = [arguments for name, arguments in final_stage() if name == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])


def test_final_stage_installs_nothing():
    commands = " ".join(arguments for name, arguments in final_stage() if name == "RUN")
    assert not re.search(r"\binstall -(?!d)|pip install|apt", commands)
    assert any(name == "HEALTHCHECK" for name, _ in final_stage())


def test_installed_packages_are_pinned_by_hash():
    installs = [
        line for run in arguments("RUN") for line in run.splitlines() if re.search(r"\binstall\b", line)
    ]
    fetching = [line for line in installs if "requirements/" in line or 'install="' in line]
    assert any("--require-hashes" in line for line in fetching)
    assert all("$install " in line or "--require-hashes" in line for line in fetching)
    assert all("--no-index" in line for line in installs if line not in fetching and "pip" in line)


@pytest.mark.parametrize("name", ["apiserver", "controller-manager", "ready"])
def test_programs_of_image_are_executable(name):
    program = ROOT / "deploy" / "bin" / name
    assert program.stat().st_mode & 0o111 == 0o111
    assert program.read_text().startswith("#!/")
