"""The wheel installs one package, and works beside packages named like its subpackages."""

import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.architecture.source import ROOT

NAMESAKES = ("apimachinery", "apiserver", "controller_manager", "etcd")

PROGRAM = """
import sys
sys.path[:] = [*sys.argv[1:], *(path for path in sys.path if path not in ("", {root!r}))]
import apiserver, apimachinery, controller_manager, etcd
assert {{module.OWNER for module in (apiserver, apimachinery, controller_manager, etcd)}} == {{"somebody else"}}
from mockube import Cluster
with Cluster(nodes=1) as cluster:
    cluster.apply("{{apiVersion: v1, kind: Namespace, metadata: {{name: shop}}}}")
    cluster.wait("Namespace", "shop", lambda tree: tree["status"]["phase"] == "Active")
import mockube.apiserver
print(mockube.apiserver.__file__)
"""


def build(tree, target, folder):
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    return next(folder.glob("*.whl" if target == "wheel" else "*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return zipfile.ZipFile(build(ROOT, "wheel", tmp_path_factory.mktemp("wheel")))


def test_wheel_installs_one_package(wheel):
    assert {name.partition("/")[0] for name in wheel.namelist() if ".dist-info/" not in name} == {"mockube"}


def test_wheel_contains_every_file_once(wheel):
    installed = [name for name in wheel.namelist() if ".dist-info/" not in name]
    assert len(installed) == len(set(installed))
    tracked = {
        f"mockube/{path}" if not path.startswith("mockube/") else path
        for path in files_in("mockube", *NAMESAKES)
    }
    assert set(installed) == tracked


def test_wheel_built_from_sdist_is_identical(wheel, tmp_path):
    """A source distribution contains no symbolic links."""
    with tarfile.open(build(ROOT, "sdist", tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = next(path for path in tmp_path.iterdir() if path.is_dir())
    file = zipfile.ZipFile(build(tree, "wheel", tmp_path / "again"))
    assert sorted(file.namelist()) == sorted(wheel.namelist())


def files_in(*folders):
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT).as_posix()


def test_installed_wheel_works_beside_packages_of_same_names(wheel, tmp_path):
    """python-etcd installs `etcd`, and a user's project may have a folder `apiserver`."""
    site, project = tmp_path / "site", tmp_path / "project"
    wheel.extractall(site)
    for name in NAMESAKES:
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text('OWNER = "somebody else"\n')
    program = PROGRAM.format(root=str(ROOT))
    done = subprocess.run(
        [sys.executable, "-c", program, str(project), str(site)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(site / "mockube/apiserver/__init__.py")
