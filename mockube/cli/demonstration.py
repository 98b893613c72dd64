"""The demonstration of `mockube demo`: a Deployment on a cluster of its own, which loses a node and gets it back.

The machine's kubectl runs the commands. Without it the same requests are sent, and the tables of the server are printed, which
are those that kubectl prints.
"""

import http.client
import os
import shlex
import signal
import ssl
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.cluster import Cluster
from mockube.controller_manager.client.kubeconfig import Access, read
from mockube.failure import Failure

from .output import table

DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
WEB: Final = f"{DEPLOYMENTS}/web"
NODE: Final = "/api/v1/nodes/node-1"
PODS: Final = "/api/v1/namespaces/default/pods"
REPLICA_SETS: Final = "/apis/apps/v1/namespaces/default/replicasets"
STOP_HEARTBEATS: Final = "mockube.dev/stop-heartbeats"

SECONDS: Final = 10.0
"""The timeout of a request."""
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PATCH: Final = "application/strategic-merge-patch+json"


class Show(Struct, frozen=True, kw_only=True):
    """A command that prints objects as a table."""

    words: str
    path: str
    wide: bool = False


class Write(Struct, frozen=True, kw_only=True):
    """A command that creates an object, or patches it."""

    words: str
    path: str
    body: Mapping[str, Any]
    method: str = "PATCH"
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


def _deployment() -> Mapping[str, Any]:
    """Return the object that `kubectl create deployment` creates."""
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
            },
        },
    }


_CONTAINER: Final = {"name": "nginx", "image": "nginx:1.29"}

STEPS: Final = (
    Step(
        title="A cluster with three nodes, in this process",
        commands=(Show(words="get nodes", path="/api/v1/nodes"),),
    ),
    Step(
        title="Deploy: a Deployment creates three pods, and the scheduler places them",
        commands=(
            Write(
                words="create deployment web --image=nginx --replicas=3",
                method="POST",
                path=DEPLOYMENTS,
                body=_deployment(),
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
                path=WEB,
                body={"spec": {"replicas": 5}},
                printed="deployment.apps/web scaled",
            ),
            Rollout(),
            Show(words="get deployment web", path=WEB),
        ),
    ),
    Step(
        title="Roll out: a new image replaces the pods, a few at a time",
        commands=(
            Write(
                words="set image deployment web nginx=nginx:1.29",
                path=WEB,
                body={"spec": {"template": {"spec": {"containers": [_CONTAINER]}}}},
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
                path=NODE,
                body={"metadata": {"annotations": {STOP_HEARTBEATS: "true"}}},
                printed="node/node-1 annotated",
            ),
            Advance(seconds=420),
            Show(words="get nodes", path="/api/v1/nodes"),
            Show(words="get pods -o wide", path=PODS, wide=True),
        ),
    ),
    Step(
        title="Heal: the node comes back, and deletes the pods that were replaced",
        commands=(
            Write(
                words=f"annotate node node-1 {STOP_HEARTBEATS}-",
                path=NODE,
                body={"metadata": {"annotations": {STOP_HEARTBEATS: None}}},
                printed="node/node-1 annotated",
            ),
            Advance(seconds=60),
            Show(words="get nodes", path="/api/v1/nodes"),
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
                answer = _send(self._access, "GET", command.path)
                self._output.text(_table_text(answer, wide=command.wide))
            case Write():
                _send(self._access, command.method, command.path, command.body)
                self._output.text(command.printed)
            case Rollout():
                self._cluster.wait("Deployment", "web", _is_rolled_out)
                self._output.text('deployment "web" successfully rolled out')


def _table_text(answer: Mapping[str, Any], *, wide: bool) -> str:
    """Return a Table of the server as kubectl prints it."""
    columns = answer["columnDefinitions"]
    printed_columns = [number for number, column in enumerate(columns) if wide or not column.get("priority")]
    rows = [[columns[number]["name"].upper() for number in printed_columns]]
    rows += [[str(row["cells"][number]) for number in printed_columns] for row in answer["rows"]]
    return table(rows)


def _is_rolled_out(tree: ReadOnlyTree) -> bool:
    """Return whether all pods are updated and available, and no other ones are left."""
    status, replicas = tree.get("status") or {}, tree["spec"]["replicas"]
    counts = (status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas"))
    return status.get("observedGeneration") == meta.generation(tree) and all(
        count == replicas for count in counts
    )


def _send(access: Access, method: str, path: str, body: object = None) -> Mapping[str, Any]:
    url = urlsplit(access.server)
    context = ssl.create_default_context(cadata=access.authority.decode())
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=context, timeout=SECONDS)
    headers = {
        "Authorization": f"Bearer {access.token}",
        "Accept": TABLE,
        "Content-Type": PATCH if method == "PATCH" else "application/json",
    }
    try:
        connection.request(method, path, orjson.dumps(body) if body else None, headers)
        response = connection.getresponse()
        answer: Mapping[str, Any] = orjson.loads(response.read())
    finally:
        connection.close()
    if response.status >= http.client.BAD_REQUEST:
        raise Failure(answer.get("message") or f"{method} {path}: {response.status}")
    return answer
