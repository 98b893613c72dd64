"""The images of compose.yaml: from registries if these can be reached, or else made of Debian's packages.

The functions return the variables that pass the images to compose.yaml.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

from tools.compose_test import engine
from tools.compose_test.commands import SetupFailed, report, run
from tools.compose_test.stock import Stock

ROOT = Path(__file__).parents[2]
OURS = {"MOCKUBE_IMAGE": "mockube:test"}
SERVERS = "mockube-test/servers:debian"
OTHERS = ("MOCKUBE_ETCD_IMAGE", "MOCKUBE_HAPROXY_IMAGE", "MOCKUBE_PROMETHEUS_IMAGE")
LEFT_OUT = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man")
BUILDER = """\
FROM mockube-test/base:debian
COPY . /wheels
ENV PYTHONPATH=/wheels/{pip} PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
"""


def pull_or_build(stock: Stock) -> Mapping[str, str]:
    """Return images for an engine that was already running."""
    try:
        report("images from registries")
        for image in _images_to_pull():
            run("docker", "pull", "--quiet", image)
        _build(os.environ)
    except SetupFailed as reason:
        report(f"{reason}")
        engine.check_possible()
        stock.fetch()
        return from_stock(stock, os.environ)
    return OURS


def from_stock(stock: Stock, environment: Mapping[str, str]) -> Mapping[str, str]:
    report("images from Debian's packages")
    _import(stock.base, "mockube-test/base:debian", environment)
    _import(stock.servers, SERVERS, environment)
    (pip,) = stock.wheels.glob("pip-*.whl")
    (stock.wheels / "Dockerfile").write_text(BUILDER.format(pip=pip.name))
    run("docker", "build", "--tag=mockube-test/builder:debian", stock.wheels, environment=environment)
    _build(
        environment,
        "--build-arg=BASE=mockube-test/base:debian",
        "--build-arg=BUILDER=mockube-test/builder:debian",
    )
    return {**OURS, **dict.fromkeys(OTHERS, SERVERS)}


def _images_to_pull() -> list[str]:
    """The default images of compose.yaml that are not built."""
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values()
    return sorted(
        service["image"].partition(":-")[2].rstrip("}") for service in services if "build" not in service
    )


def _build(environment: Mapping[str, str], *options: str) -> None:
    tag = f"--tag={OURS['MOCKUBE_IMAGE']}"
    run("docker", "build", f"--file={ROOT}/deploy/Dockerfile", tag, *options, ROOT, environment=environment)


def _import(tree: Path, image: str, environment: Mapping[str, str]) -> None:
    pack = ["tar", "--create", f"--directory={tree}", *(f"--exclude=./{path}" for path in LEFT_OUT), "."]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
        subprocess.run(
            ["docker", "import", "-", image],
            stdin=packing.stdout,
            env=environment,
            check=True,
            capture_output=True,
        )
