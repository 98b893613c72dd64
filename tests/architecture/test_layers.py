"""The import-linter contracts in pyproject.toml hold, and a forbidden import breaks them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

from tests.architecture.source import settings
from tools.packages import CODE, ROOT

CONTRACTS = tuple(contract["name"] for contract in settings()["tool"]["importlinter"]["contracts"])

PLANTED = {
    "layers of the API server": (
        "apiserver/storage/planted.py",
        "import mockube.apiserver.registry",
    ),
    "layers of the kinds: groups do not import each other, apart from core": (
        "apiserver/kinds/apps/planted.py",
        "import mockube.apiserver.kinds.batch",
    ),
    "layers of the core kinds": (
        "apiserver/kinds/core/volumes/planted.py",
        "import mockube.apiserver.kinds.core.pod",
    ),
    "layers of the controller manager": (
        "controller_manager/control/planted.py",
        "import mockube.controller_manager.workloads",
    ),
    "layers of the client": (
        "client/cache/planted.py",
        "import mockube.client.queue",
    ),
    "explanations are pure: no HTTP, no event loop, no part of a process": (
        "explanations/planted.py",
        "import mockube.kubelet",
    ),
    "layers of the explanations": (
        "explanations/records.py",
        "from mockube.explanations import pods",
    ),
    "layers of the publisher": ("publisher/sockets.py", "from mockube.publisher.listeners import Listeners"),
    "controllers import neither scheduler nor kubelets: the manager's components make these": (
        "controller_manager/controllers/cronjob/planted.py",
        "import mockube.scheduler",
    ),
    "client, scheduler, kubelet and run-times import neither the API server nor the store": (
        "client/planted.py",
        "from mockube.etcd import kv",
    ),
    "layers of the kubelet": (
        "kubelet/volumes/planted.py",
        "import mockube.kubelet.pod_lifecycle",
    ),
    "the kubelet knows only the contract of its run-times: one module makes and chooses them": (
        "kubelet/server/planted.py",
        "import mockube.container_runtime.process",
    ),
    "layers of the run-times: simulated containers and processes do not know each other": (
        "container_runtime/process/planted.py",
        "import mockube.container_runtime.simulated",
    ),
    "layers of the simulated containers: programs use the network by calls that something else carries out": (
        "container_runtime/simulated/network/planted.py",
        "import mockube.container_runtime.simulated.shell",
    ),
    "the rules of the network are pure: they know objects of the API, and not who asks": (
        "network/planted.py",
        "import mockube.container_runtime.runtime",
    ),
    "layers of the scheduler": (
        "scheduler/devices/planted.py",
        "import mockube.scheduler.filters",
    ),
    "controllers do not import each other; shared code is in workloads": (
        "controller_manager/controllers/cronjob/planted.py",
        "import mockube.controller_manager.controllers.job",
    ),
    "controllers of OpenKruise do not import each other": (
        "packs/kruise/controllers/cloneset/planted.py",
        "import mockube.packs.kruise.controllers.uniteddeployment",
    ),
    "no package imports an extra": ("container_runtime/planted.py", "import mockube.extras.python"),
    "no package imports a pack": ("mockube/cluster/planted.py", "import mockube.packs.kruise"),
    "layers of OpenKruise: the API server loads no controllers, and the controller manager no webhooks": (
        "packs/kruise/webhooks/planted.py",
        "import mockube.packs.kruise.catalog",
    ),
    "webhooks of OpenKruise do not import the controller manager": (
        "packs/kruise/definitions/planted.py",
        "import mockube.controller_manager",
    ),
    "controllers of OpenKruise import neither the API server nor the store": (
        "packs/kruise/catalog/planted.py",
        "import mockube.etcd",
    ),
    "only the HTTP layer of the API server imports aiohttp": (
        "apiserver/request/planted.py",
        "import aiohttp",
    ),
    "layers of the packages": (
        "etcd/planted.py",
        "import mockube.apimachinery",
    ),
    "the API server imports none of its clients": ("apiserver/planted.py", "import mockube.kubelet"),
    "scheduler and shared components know neither run-times nor the store": (
        "component_base/planted.py",
        "import mockube.etcd",
    ),
    "the controller manager imports neither the API server nor the store": (
        "controller_manager/planted.py",
        "from mockube.etcd import kv",
    ),
    "apimachinery is pure: no HTTP, no event loop": ("apimachinery/planted.py", "import asyncio"),
    "the launch of the processes imports neither of them": (
        "mockube/processes/planted.py",
        "import mockube.controller_manager",
    ),
    "the kubelet imports no command line: only pools of nodes are values of flags": (
        "kubelet/settings/planted.py",
        "import mockube.component_base.flags",
    ),
    "the embedded store and the KV contract do not use the network": (
        "etcd/embedded/planted.py",
        "import aiohttp",
    ),
}


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def skeleton(tree: Path) -> None:
    """Create empty copies of the checkout's packages, with its contracts."""
    for folder in (*CODE, "etcd/embedded"):
        (tree / folder).mkdir(parents=True, exist_ok=True)
        (tree / folder / "__init__.py").touch()
    for path in (ROOT / "mockube").iterdir():
        if path.is_symlink():
            (tree / "mockube" / path.name).symlink_to(path.readlink())
    for contract in settings()["tool"]["importlinter"]["contracts"]:
        forbidden = [name for name in contract.get("forbidden_modules", ()) if name.startswith("mockube.")]
        named = ("source_modules", "protected_modules", "allowed_importers")
        for name in (*(name for field in named for name in contract.get(field, ())), *forbidden):
            (tree / name.replace(".", "/")).mkdir(parents=True, exist_ok=True)
            (tree / name.replace(".", "/") / "__init__.py").touch()
        for container in contract.get("containers", ()):
            (tree / container.replace(".", "/")).mkdir(parents=True, exist_ok=True)
            (tree / container.replace(".", "/") / "__init__.py").touch()
            for name in re.findall(r"\w+", " ".join(contract["layers"])):
                layer = tree / container.replace(".", "/") / name
                layer.mkdir(exist_ok=True)
                (layer / "__init__.py").touch()
    controllers = ("controller_manager/controllers/cronjob", "controller_manager/controllers/job")
    for controller in (
        *controllers,
        *(f"packs/kruise/controllers/{each}" for each in ("cloneset", "uniteddeployment")),
    ):
        (tree / controller).mkdir()
        (tree / controller / "__init__.py").touch()
    for module in ("etcd/kv.py", "etcd/errors.py"):
        (tree / module).touch()
    (tree / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())


def test_tree_keeps_every_import_contract():
    answer = lint(ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert [name for name in CONTRACTS if f"{name} KEPT" not in answer.stdout] == []


def test_every_module_of_apimachinery_is_shared():
    """What only one of the packages reaches belongs to that package."""
    graph = grimp.build_graph("mockube", cache_dir=None)
    modules = (name for name in graph.modules if name.startswith("mockube.apimachinery."))
    assert not [
        (name, importers)
        for name in modules
        if not graph.find_children(name) and len(importers := _packages_above(graph, name)) < 2
    ]


def _packages_above(graph, name):
    """Return the packages other than apimachinery that import a module, directly or through other modules."""
    parts = (module.split(".") for module in graph.find_downstream_modules(name))
    return {part[1] for part in parts if len(part) > 1} - {"apimachinery"}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_planted_import_breaks_contract(contract, tmp_path):
    skeleton(tmp_path)
    path, line = PLANTED[contract]
    (tmp_path / path).write_text(line + "\n")
    answer = lint(tmp_path)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert f"{contract} BROKEN" in answer.stdout
