"""The wheel installs one package, and works beside packages named like its subpackages."""

import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest

from tools.installation import locked_versions
from tools.packages import EXTRAS, ROOT, build_package

NAMESAKES = (
    "apimachinery",
    "apiserver",
    "client",
    "component_base",
    "container_runtime",
    "controller_manager",
    "etcd",
    "explanations",
    "kubelet",
    "network",
    "packs",
    "publisher",
    "scheduler",
)

START_CLUSTER = """
from mockube import Cluster
with Cluster(nodes=1) as cluster:
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    cluster.wait("Namespace", "shop", lambda tree: tree["status"]["phase"] == "Active")
import mockube.apiserver
print(mockube.apiserver.__file__)
"""

RUN_PROGRAMS = """
from mockube.container_runtime.extras import missing_distribution
print(missing_distribution("crictl", on_node=True))
POD = "{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {containers: [{name: c, image: IMAGE, args: [ARGS]}]}}"
with Cluster(nodes=1) as cluster:
    for name, image, args in (("p", "'python:3.12'", "python, -c, 'print(1)'"), ("web", "'nginx:1.29'", "nginx, -t")):
        cluster.apply(POD.replace("NAME", name).replace("IMAGE", image).replace("ARGS", args))
        ready = lambda pod: any(each["type"] == "mockube.dev/NotSimulated" for each in pod["status"]["conditions"])
        pod = cluster.wait("Pod", name, lambda pod: "conditions" in pod.get("status", {}) and ready(pod))
        print(next(each["message"] for each in pod["status"]["conditions"] if each["type"] == "mockube.dev/NotSimulated"))
"""

PROGRAM = """
import sys
sys.path[:] = [*sys.argv[1:], *(path for path in sys.path if path not in ("", {root!r}))]
import importlib
modules = [importlib.import_module(name) for name in {names!r}]
assert {{module.OWNER for module in modules}} == {{"somebody else"}}
""" + START_CLUSTER.replace("{", "{{").replace("}", "}}")


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory):
    return build_package("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def wheel(wheel_file):
    return zipfile.ZipFile(wheel_file)


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
    with tarfile.open(build_package("sdist", tmp_path)) as archive:
        archive.extractall(tmp_path, filter="data")
    tree = next(path for path in tmp_path.iterdir() if path.is_dir())
    file = zipfile.ZipFile(build_package("wheel", tmp_path / "again", tree=tree))
    assert sorted(file.namelist()) == sorted(wheel.namelist())


def files_in(*folders):
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(ROOT).as_posix()


PYTHON_ETCD = "python-etcd==0.4.5"


def pip(python, *arguments):
    """Run pip; packages are built with what is in pip's cache or in the registry."""
    command = [python, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_wheel_works_in_a_fresh_environment_beside_python_etcd(wheel_file, tmp_path):
    """Both are installed with pip, in the versions of the lock."""
    environment, project = tmp_path / "environment", tmp_path / "project"
    project.mkdir()
    venv.create(environment, with_pip=True)
    python = str(environment / "bin/python")
    downloaded = pip(python, "download", "--no-deps", "--dest", str(tmp_path), PYTHON_ETCD)
    if downloaded.returncode:
        pytest.skip(f"no package registry has {PYTHON_ETCD}: {downloaded.stderr.strip()[-200:]}")
    versions = tmp_path / "versions.txt"
    versions.write_text(locked_versions())
    installed = pip(python, "install", "--constraint", str(versions), PYTHON_ETCD, str(wheel_file))
    assert not installed.returncode, installed.stderr
    program = f"import etcd; etcd.Client(); print(etcd.__file__)\n{START_CLUSTER}{RUN_PROGRAMS}"
    done = subprocess.run([python, "-c", program], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs, ours, *missing = done.stdout.splitlines()
    assert theirs.endswith("site-packages/etcd/__init__.py")
    assert ours.endswith("site-packages/mockube/apiserver/__init__.py")
    assert missing == [
        "mockube-machines",
        "python of the image python:3.12 is not simulated without mockube-python, which pip installs: the container runs without it until it is stopped",
        "nginx of the image nginx:1.29 is not simulated without mockube-servers, which pip installs: the container runs without it until it is stopped",
    ]


def test_wheel_of_an_extra_contains_its_modules_only(tmp_path):
    for extra in EXTRAS:
        file = zipfile.ZipFile(build_package("wheel", tmp_path, tree=extra))
        installed = [name for name in file.namelist() if ".dist-info/" not in name]
        paths = (path for path in extra.rglob("*") if path.suffix in (".py", ".yaml"))
        assert sorted(installed) == sorted(f"mockube/{path.relative_to(ROOT)}" for path in paths)
        assert any(name.endswith("/entry_points.txt") for name in file.namelist())


def test_installed_wheel_works_beside_folders_of_same_names(wheel, tmp_path):
    """A user's project may have a folder `apiserver` or `etcd`."""
    site, project = tmp_path / "site", tmp_path / "project"
    wheel.extractall(site)
    for name in NAMESAKES:
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text('OWNER = "somebody else"\n')
    program = PROGRAM.format(root=str(ROOT), names=NAMESAKES)
    done = subprocess.run(
        [sys.executable, "-c", program, str(project), str(site)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(site / "mockube/apiserver/__init__.py")
