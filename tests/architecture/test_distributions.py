"""Dependencies: the lock pins all of them by hash and without URLs, and none installs a package `mockube`."""

import re
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions, requires

import pytest
from packaging.requirements import Requirement

from tests.architecture.source import settings
from tools.packages import ROOT

LOCKS = {path.stem: path.read_text() for path in (ROOT / "requirements").glob("*.txt")}
LOCK = LOCKS["dev"]

_PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==\S+(?P<marker> ;[^\\]*)? \\\n(?P<hashes>(?:    --hash=.*\n)+)", re.MULTILINE
)
_HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}(?: \\)?")


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned_distributions(lock: str) -> dict[str, bool]:
    """Return the distributions that a lock pins by sha256, and whether each is for every platform."""
    return {
        normalised(match["name"]): match["marker"] is None
        for match in _PINNED.finditer(lock)
        if all(_HASH.fullmatch(line) for line in match["hashes"].splitlines())
    }


def dependency_names() -> Iterator[str]:
    """Yield the names of the dependencies in pyproject.toml, of every group."""
    groups = settings()["dependency-groups"].values()
    lines = [*settings()["project"]["dependencies"], *(line for group in groups for line in group)]
    for line in lines:
        if isinstance(line, str):
            yield normalised(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0])


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the names of the requirements and of all that they need here."""
    names: set[str] = set()
    left = [Requirement(line) for line in requirements]
    while left:
        requirement = left.pop()
        name = normalised(requirement.name)
        if name not in names and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            names.add(name)
            left += map(Requirement, requires(name) or ())
    return names


def providers(package: str, installed: Iterable[Distribution]) -> set[str]:
    """Return the distributions that install a top-level package or module of this name."""
    return {
        normalised(distribution.name)
        for distribution in installed
        for file in distribution.files or ()
        if file.parts[0].removesuffix(".py") == package
    }


def test_every_dependency_is_in_the_lock_with_hashes():
    assert set(dependency_names()) - pinned_distributions(LOCK).keys() == set()


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_lock_file_contains_only_pins_and_hashes(lock):
    """The lock contains no URL, no option and no pin without hashes."""
    assert _PINNED.sub("", lock) == ""
    assert "://" not in lock


@pytest.mark.parametrize("name", ["build", "run"])
def test_environments_for_running_and_development_have_same_versions(name):
    pins, dev = ({match[0].split()[0] for match in _PINNED.finditer(LOCKS[lock])} for lock in (name, "dev"))
    assert pins - dev == set()


@pytest.mark.parametrize("name", ["build", "run"])
def test_lock_has_all_that_its_packages_need(name):
    """They are installed without a search for dependencies."""
    group = (
        settings()["dependency-groups"]["build"] if name == "build" else settings()["project"]["dependencies"]
    )
    assert closure(group) - pinned_distributions(LOCKS[name]).keys() == set()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("orjson==3.11.6\n", id="pin without hash"),
        pytest.param("orjson>=3.11.6 \\\n    --hash=sha256:" + "0" * 64 + "\n", id="version range"),
        pytest.param("orjson==3.11.6 \\\n    --hash=md5:" + "0" * 32 + "\n", id="MD5 hash"),
    ],
)
def test_unlocked_dependency_is_detected(line):
    assert pinned_distributions(line) == {}


def test_every_locked_package_is_installed():
    """The next test reads the installed packages, so they must be those of the lock."""
    here = {normalised(distribution.name) for distribution in distributions()}
    assert {name for name, everywhere in pinned_distributions(LOCK).items() if everywhere} - here == set()


def test_no_distribution_installs_a_package_of_our_name():
    assert providers("mockube", distributions()) <= {"mockube"}


@pytest.mark.parametrize("file", ["etcd/__init__.py", "etcd.py"])
def test_distribution_with_conflicting_module_name_is_detected(file, tmp_path):
    info = tmp_path / "python_etcd-0.4.5.dist-info"
    info.mkdir()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: python-etcd\nVersion: 0.4.5\n")
    (info / "RECORD").write_text(f"{file},,\npython_etcd-0.4.5.dist-info/METADATA,,\n")
    assert providers("etcd", distributions(path=[str(tmp_path)])) == {"python-etcd"}
