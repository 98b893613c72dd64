"""The compose project run by a compose command and an engine, which must both be installed.

MOCKUBE_COMPOSE names the command, such as "docker compose"; images are named as compose.yaml has them named.
"""

import os
import shlex
import subprocess
import sys

import orjson

from tests.support.processes.acknowledged_writes import until
from tests.support.processes.process import ROOT

COMPOSE = os.environ.get("MOCKUBE_COMPOSE", "")
IMAGE = os.environ.get("MOCKUBE_IMAGE", "mockube:local")
PROJECT = ("--project-name", "mockube-test", "--profile", "metrics")
PORTS = {"MOCKUBE_PORT": "16443", "MOCKUBE_PROMETHEUS_PORT": "19090"}
DEBIAN = {"MOCKUBE_PROMETHEUS_CONFIG": "control-plane.yml"}
"""Debian's Prometheus has no discovery by Kubernetes, and Debian has no Grafana."""
"""Ports that differ from the project's defaults."""
URL, PROMETHEUS = (
    f"{scheme}://127.0.0.1:{port}" for scheme, port in zip(("https", "http"), PORTS.values(), strict=True)
)
TIMEOUT = 100


def run(*command, check=True, **variables):
    """Return what a command printed."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    assert done.returncode == 0 or not check, (command, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


class Container:
    """One replica of a service, the same one before and after it was killed."""

    def __init__(self, identity):
        self.identity = identity

    def inspect(self):
        return orjson.loads(run("docker", "inspect", self.identity))[0]

    @property
    def name(self):
        return self.inspect()["Name"].strip("/")

    @property
    def hostname(self):
        return self.inspect()["Config"]["Hostname"]

    def is_healthy(self):
        state = self.inspect()["State"]
        return state["Running"] and state["Health"]["Status"] == "healthy"

    def execute(self, *command, check=True):
        return run("docker", "exec", self.identity, *command, check=check)

    def kill(self):
        """As a crash would end it, unlike `docker kill`, after which an engine does not restart the container."""
        before = self.inspect()
        kill = ("sh", "-c", f"kill -9 {before['State']['Pid']}")
        run(
            "docker",
            "run",
            "--rm",
            "--pid=host",
            "--network=none",
            "--user=0",
            "--no-healthcheck",
            IMAGE,
            *kill,
        )
        until(lambda: self.inspect()["RestartCount"] > before["RestartCount"], f"a restart of {self.name}")


class Project:
    """All of compose.yaml, with two API servers and Prometheus, from start to end of a block."""

    def __init__(self, folder):
        self.kubeconfig = folder / "admin.conf"

    def __enter__(self):
        try:
            self.start()
        except AssertionError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        sys.stdout.write(self("logs", "--tail=40"))
        self("down", "--volumes", "--timeout=20")

    def start(self):
        self("up", "--detach", "--no-build", "--scale", "apiserver=2", "--scale", "grafana=0")
        until(self.kubeconfig.exists, "a kubeconfig")
        for service in ("front", "controller-manager", "prometheus"):
            for container in self.containers(service):
                until(container.is_healthy, f"health of {container.name}")

    def __call__(self, *arguments):
        variables = {
            **PORTS,
            **DEBIAN,
            "MOCKUBE_KUBECONFIG_DIR": str(self.kubeconfig.parent),
            # Compose pulls the image of a service of which it starts no container, too, and Grafana's cannot be had everywhere.
            "MOCKUBE_GRAFANA_IMAGE": IMAGE,
        }
        return run(*shlex.split(COMPOSE), *PROJECT, *arguments, **variables)

    def containers(self, service):
        return [Container(identity) for identity in self("ps", "--quiet", service).split()]

    def kubectl(self, *arguments):
        return run("kubectl", "--kubeconfig", str(self.kubeconfig), *arguments)
