"""`make dist`: the files of a release have the same bytes each time, and each runs in an empty environment.

The tests that install packages are skipped, with the reason, if no package registry can be reached.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import orjson
import pytest

from tests.architecture.source import settings
from tests.support.processes.empty_environment import INSTALL_SECONDS, empty_environment, run
from tools.distribution.__main__ import SUMS, build, check_committed, checksums
from tools.distribution.bill import bill_of_materials
from tools.distribution.source_tree import tracked_tree
from tools.packages import EXTRAS, ROOT

pytestmark = pytest.mark.timeout(2 * INSTALL_SECONDS + 60)

UV = Path(sys.executable).with_name("uv")
VERSION = settings()["project"]["version"]
EPOCH = 1_790_000_000
PLATFORMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "aarch64-pc-windows-msvc",
)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
WITHOUT_WHEEL = {("aarch64-pc-windows-msvc", "3.11"): "pyyaml"}
"""Packages that are built from source on a platform."""
STARTS = ("run", "--", "sh", "-c", 'test -s "$KUBECONFIG" && echo started')
"""A command that starts a cluster."""


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build(folder, EPOCH)
    return folder


@pytest.fixture
def wheel(dist):
    return next(dist.glob("mockube-*.whl"))


@pytest.fixture
def empty(tmp_path):
    return empty_environment(tmp_path)


@pytest.mark.release
def test_distribution_built_again_is_identical(dist, tmp_path):
    build(tmp_path / "again", EPOCH)
    first, again = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in (dist, tmp_path / "again")
    )
    assert first == again


def test_checksums_are_those_of_all_files(dist):
    assert (dist / SUMS).read_text() == checksums(
        path for path in sorted(dist.iterdir()) if path.name != SUMS
    )


def test_bill_of_materials_lists_every_locked_package(dist):
    bill = orjson.loads(next(dist.glob("*.cdx.json")).read_bytes())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["name"] == "mockube"
    lines = (ROOT / "requirements/run.txt").read_text().splitlines()
    locked = {line.split()[0].replace("==", "@") for line in lines if "==" in line}
    assert {component["purl"].removeprefix("pkg:pypi/") for component in bill["components"]} == locked
    for component in bill["components"]:
        assert {row["alg"] for row in component["hashes"]} == {"SHA-256"}
        assert component["licenses"]
    edges = {row["ref"].partition("@")[0]: row["dependsOn"] for row in bill["dependencies"]}
    assert any(name.startswith("pkg:pypi/multidict@") for name in edges["pkg:pypi/aiohttp"])
    references = [component["bom-ref"] for component in bill["components"]]
    assert all(set(row["dependsOn"]) <= set(references) for row in bill["dependencies"])
    assert len(references) == len(set(references))


def test_bill_of_materials_needs_the_metadata_of_each_package(tmp_path, wheel):
    for pin, problem in {
        "no-such-package==1": "no-such-package is not installed, so its licence and requirements are unknown",
        "attrs==1": "and not 1: run `make setup`",
    }.items():
        (tmp_path / "run.txt").write_text(f"{pin} \\\n    --hash=sha256:{'0' * 64}\n")
        with pytest.raises(SystemExit, match=problem):
            bill_of_materials(wheel, tmp_path / "run.txt", EPOCH)


def test_release_from_an_unpacked_source_distribution_needs_a_time(dist, tmp_path):
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    for value, problem in {
        "": f"mockube: {tree} is no checkout of git, so the time of the commit is unknown: set SOURCE_DATE_EPOCH",
        "now": 'mockube: SOURCE_DATE_EPOCH is "now", and must be a number of seconds since 1970',
    }.items():
        done = subprocess.run(
            [sys.executable, "-m", "tools.distribution", tmp_path / "out"],
            env={**os.environ, "SOURCE_DATE_EPOCH": value},
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert done.stderr.startswith(problem)


@pytest.fixture
def checkout(tmp_path):
    """Return a repository with one file that is committed, and one that git does not track."""
    root = tmp_path / "checkout"
    root.mkdir()
    (root / "a.py").write_text("a = 1\n")
    for command in (
        "init --quiet",
        "add a.py",
        "-c user.name=a -c user.email=a@example.com commit --quiet -m a",
    ):
        run("git", *command.split(), env=os.environ, cwd=root)
    (root / "other.txt").touch()
    return root


def test_only_tracked_files_are_packed(checkout):
    with tracked_tree(checkout) as tree:
        assert [path.name for path in tree.iterdir()] == ["a.py"]


def test_release_of_changed_files_is_refused(checkout, capsys):
    check_committed(checkout, may_differ=False)
    assert capsys.readouterr().err == "mockube: not packed, because git does not track it: other.txt\n"
    (checkout / "a.py").write_text("a = 2\n")
    with pytest.raises(
        SystemExit, match=r"these files differ from the commit: a\.py\. Commit them, or build with --dirty"
    ):
        check_committed(checkout, may_differ=False)
    check_committed(checkout, may_differ=True)


def test_interrupted_installation_of_the_program_of_one_file_leaves_nothing(dist, empty, tmp_path):
    """The registry does not respond, so pip waits when the signal arrives."""
    with socket.create_server(("127.0.0.1", 0)) as registry:
        process = subprocess.Popen(
            [os.path.realpath(sys.executable), dist / "mockube.pyz", "version"],
            env={
                **empty,
                "PIP_INDEX_URL": f"http://127.0.0.1:{registry.getsockname()[1]}/simple",
                "PIP_NO_CACHE_DIR": "1",
                "XDG_CACHE_HOME": str(tmp_path / "cache"),
            },
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        connection, _ = registry.accept()
        with connection:
            os.killpg(process.pid, signal.SIGINT)
            _, errors = process.communicate()
    assert process.returncode == 130
    assert [line.partition(" into ")[0] for line in errors.splitlines()] == ["mockube: installing"]
    assert [path.suffix for path in (tmp_path / "cache/mockube").iterdir()] == [".lock"]


@pytest.mark.release
def test_program_of_one_file_starts_a_cluster(dist, empty, tmp_path):
    program = shutil.copy(dist / "mockube.pyz", tmp_path / "mockube.pyz")
    python = os.path.realpath(sys.executable)
    assert run(python, program, *STARTS, env=empty, cwd=tmp_path).endswith("started\n")
    again = run(python, program, "version", env={**empty, "PIP_NO_INDEX": "1"}, cwd=tmp_path)
    assert again.strip() == VERSION
    refused = subprocess.run(
        [python, program, "get", "pods"], env=empty, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert f"\n  {python} {program} up --detach\n" in refused.stderr


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        pytest.param(
            {"PIP_NO_INDEX": "1"}, "pip could not install it, and said why, above", id="no registry"
        ),
        pytest.param({"XDG_CACHE_HOME": "/dev/null"}, "Set XDG_CACHE_HOME to a folder", id="no cache folder"),
    ],
)
def test_program_of_one_file_that_cannot_install_says_what_to_do(variables, message, dist, empty):
    command = [os.path.realpath(sys.executable), dist / "mockube.pyz", "version"]
    done = subprocess.run(command, env=empty | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]


def test_program_of_one_file_has_the_launcher_and_the_lock(dist, wheel):
    assert (dist / "mockube.pyz").read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert (dist / "mockube.pyz").stat().st_mode & 0o111
    with zipfile.ZipFile(dist / "mockube.pyz") as archive:
        extras = [f"mockube_{extra.name}-{VERSION}-py3-none-any.whl" for extra in EXTRAS]
        assert archive.namelist() == ["__main__.py", "run.txt", wheel.name, *extras]


@pytest.mark.release
def test_uvx_runs_the_wheel(wheel, empty, tmp_path):
    shown = run(
        UV,
        "tool",
        "run",
        "--python",
        sys.executable,
        "--from",
        wheel,
        "mockube",
        *STARTS,
        env=empty,
        cwd=tmp_path,
    )
    assert shown.endswith("started\n")


@pytest.mark.release
def test_pipx_runs_the_wheel(wheel, empty, tmp_path):
    command = (
        UV,
        "tool",
        "run",
        "--python",
        sys.executable,
        "pipx",
        "run",
        "--spec",
        wheel,
        "mockube",
        "version",
    )
    assert run(*command, env=empty, cwd=tmp_path).strip() == VERSION


@pytest.mark.release
def test_source_distribution_installs_in_an_empty_environment(dist, empty, tmp_path):
    (archive,) = dist.glob("*.tar.gz")
    run(UV, "venv", "--quiet", "--python", sys.executable, "venv", env=empty, cwd=tmp_path)
    run(UV, "pip", "install", "--quiet", "--python", "venv", archive, env=empty, cwd=tmp_path)
    assert run("venv/bin/mockube", "version", env=empty, cwd=tmp_path).strip() == VERSION


@pytest.mark.release
def test_lock_resolves_for_every_platform_and_python(empty, tmp_path):
    def install(case):
        platform, python = case
        built = ("--no-binary", WITHOUT_WHEEL[case]) if case in WITHOUT_WHEEL else ()
        command = (
            UV,
            "pip",
            "install",
            "--quiet",
            "--dry-run",
            "--no-deps",
            "--only-binary",
            ":all:",
            *built,
        )
        place = ("--python-platform", platform, "--python-version", python, "--target", tmp_path / "target")
        run(
            *command, *place, "--require-hashes", "-r", ROOT / "requirements/run.txt", env=empty, cwd=tmp_path
        )

    with ThreadPoolExecutor(4) as executor:
        assert len([*executor.map(install, product(PLATFORMS, PYTHONS))]) == len(PLATFORMS) * len(PYTHONS)
