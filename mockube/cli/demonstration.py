"""The demonstration of `mockube demo`: a Deployment on a cluster of its own, which loses a node and gets it back.

The machine's kubectl runs the commands. Without it `Cluster` sends the same requests, and what kubectl prints is printed.
"""

import http.client
import os
import shlex
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import orjson
from msgspec import Struct

from mockube.apimachinery.wellknown import STOP_HEARTBEATS
from mockube.client.kubeconfig import read
from mockube.cluster import Cluster
from mockube.clusters.health import get
from mockube.container_runtime.simulated.shell.network_programs.kubectl.client import TABLE
from mockube.container_runtime.simulated.shell.network_programs.kubectl.output import table_lines
from mockube.container_runtime.simulated.shell.network_programs.kubectl.waiting import deployment_progress
from mockube.failure import Failure

NODES: Final = "/api/v1/nodes"
PODS: Final = "/api/v1/namespaces/default/pods"
DEPLOYMENT: Final = "/apis/apps/v1/namespaces/default/deployments/web"
REPLICA_SETS: Final = "/apis/apps/v1/namespaces/default/replicasets"


class Show(Struct, frozen=True, kw_only=True):
    """A command that prints objects as a table."""

    words: str
    path: str
    wide: bool = False


class Write(Struct, frozen=True, kw_only=True):
    """A command that creates or changes an object, and the same as a call of `Cluster`."""

    words: str
    call: Callable[[Cluster], object]
    printed: str


class Rollout(Struct, frozen=True, kw_only=True):
    """The command that waits until the Deployment is rolled out."""

    words: str = "rollout status deployment web"


class Advance(Struct, frozen=True, kw_only=True):
    """A call of `Cluster`: the cluster's clock is advanced."""

    seconds: int


Command: TypeAlias = Show | Write | Rollout | Advance


class Step(Struct, frozen=True, kw_only=True):
    title: str
    commands: tuple[Command, ...]


def _create_deployment(cluster: Cluster) -> None:
    """Create the object that `kubectl create deployment` creates."""
    labels = {"app": "web"}
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
        },
    }
    metadata = {"name": "web", "labels": labels}
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def _set_image(cluster: Cluster) -> None:
    container = {"name": "nginx", "image": "nginx:1.29"}
    cluster.patch("Deployment", "web", {"spec": {"template": {"spec": {"containers": [container]}}}})


def _annotate_node(cluster: Cluster, value: str | None) -> None:
    cluster.patch("Node", "node-1", {"metadata": {"annotations": {STOP_HEARTBEATS: value}}})


STEPS: Final = (
    Step(
        title="A cluster with three nodes, in this process",
        commands=(Show(words="get nodes", path=NODES),),
    ),
    Step(
        title="Deploy: a Deployment creates three pods, and the scheduler places them",
        commands=(
            Write(
                words="create deployment web --image=nginx --replicas=3",
                call=_create_deployment,
                printed="deployment.apps/web created",
            ),
            Rollout(),
            Show(words="get pods -o wide", path=PODS, wide=True),
        ),
    ),
    Step(
        title="Scale: two more pods",
        commands=(
            Write(
                words="scale deployment web --replicas=5",
                call=lambda cluster: cluster.scale("Deployment", "web", 5),
                printed="deployment.apps/web scaled",
            ),
            Rollout(),
            Show(words="get deployment web", path=DEPLOYMENT),
        ),
    ),
    Step(
        title="Roll out: a new image replaces the pods, a few at a time",
        commands=(
            Write(
                words="set image deployment web nginx=nginx:1.29",
                call=_set_image,
                printed="deployment.apps/web image updated",
            ),
            Rollout(),
            Show(words="get replicasets", path=REPLICA_SETS),
        ),
    ),
    Step(
        title="Break: node-1 is cut off; seven minutes pass at once, and its pods are replaced on other nodes",
        commands=(
            Write(
                words=f"annotate node node-1 {STOP_HEARTBEATS}=true",
                call=lambda cluster: _annotate_node(cluster, "true"),
                printed="node/node-1 annotated",
            ),
            Advance(seconds=420),
            Show(words="get nodes", path=NODES),
            Show(words="get pods -o wide", path=PODS, wide=True),
        ),
    ),
    Step(
        title="Heal: the node comes back, and deletes the pods that were replaced",
        commands=(
            Write(
                words=f"annotate node node-1 {STOP_HEARTBEATS}-",
                call=lambda cluster: _annotate_node(cluster, None),
                printed="node/node-1 annotated",
            ),
            Advance(seconds=60),
            Show(words="get nodes", path=NODES),
            Show(words="get pods -o wide", path=PODS, wide=True),
        ),
    ),
)


class Output(Struct, frozen=True, kw_only=True):
    """How the demonstration is printed."""

    colored: bool
    pause: Callable[[], None]
    """Called after each command, so that a reader can follow."""

    def title(self, number: int, text: str) -> None:
        self._line(f"\n{self._color(f'{number}/{len(STEPS)}  {text}', '1')}")

    def command(self, line: str) -> None:
        self._line(self._color(line, "32"))

    def text(self, text: str) -> None:
        self._line(text)

    def _color(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colored else text

    def _line(self, text: str) -> None:
        print(text, flush=True)


def demonstrate(output: Output, kubectl: str | None) -> None:
    """Run all steps, with the kubectl at this path, or without one."""
    with Cluster() as cluster:
        run = _Kubectl(kubectl, cluster.kubeconfig).run if kubectl else _Requests(cluster, output).run
        for number, step in enumerate(STEPS, 1):
            output.title(number, step.title)
            for command in step.commands:
                if isinstance(command, Advance):
                    output.command(f">>> cluster.advance({command.seconds})")
                    cluster.advance(command.seconds)
                else:
                    output.command(f"$ kubectl {command.words}")
                    run(command)
                output.pause()


class _Kubectl:
    """Runs commands by kubectl, whose output is not read."""

    def __init__(self, program: str, kubeconfig: Path) -> None:
        self._program = program
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}

    def run(self, command: Show | Write | Rollout) -> None:
        arguments = [self._program, *shlex.split(command.words)]
        code = subprocess.run(arguments, env=self._environment, check=False).returncode  # noqa: S603 - it was found by its name
        if code == -signal.SIGPIPE:
            raise BrokenPipeError
        if code:
            raise Failure(f"`kubectl {command.words}` failed with exit code {code}")


class _Requests:
    """Sends the requests of kubectl's commands, and prints what kubectl prints."""

    def __init__(self, cluster: Cluster, output: Output) -> None:
        self._cluster = cluster
        self._output = output
        self._access = read(cluster.kubeconfig)

    def run(self, command: Show | Write | Rollout) -> None:
        match command:
            case Show():
                self._output.text(self._table(command))
            case Write():
                command.call(self._cluster)
                self._output.text(command.printed)
            case Rollout():
                self._cluster.wait("Deployment", "web", lambda tree: not deployment_progress(tree))
                self._output.text('deployment "web" successfully rolled out')

    def _table(self, command: Show) -> str:
        status, body = get(self._access, command.path, accept=f"{TABLE},application/json")
        if status != http.client.OK:
            raise Failure(f"`kubectl {command.words}` failed: {body.decode(errors='replace')}")
        return table_lines(orjson.loads(body), is_wide=command.wide, has_header=True).rstrip()
