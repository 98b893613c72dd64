"""Measures forks of an in-process cluster: `python benchmarks/fork.py --pods 500 --forks 100`.

`--up=one` measures those of `mockube up --one-process`, `--up=two` those of `mockube up`, by Forks of their API.

Wall times depend on what else the machine does; the processor time of a fork does not.
"""

import argparse
import http.client
import json
import os
import resource
import ssl
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import mockube
from mockube import Cluster, ForkedCluster
from mockube.client import kubeconfig

NAME = "fork-benchmark"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--forks", type=int, default=100)
    parser.add_argument("--up", choices=("one", "two"), help="measure a cluster of so many processes")
    options = parser.parse_args()
    if options.up:
        measure_up(options.pods, options.forks, is_one=options.up == "one")
        return
    with Cluster(nodes=max(3, options.pods // 100)) as cluster:
        fill(cluster, options.pods)
        cluster.fork().stop()  # imports what it needs
        measure_one_after_another(cluster, options.forks)
        measure_at_once(cluster, options.forks)


def measure_up(pods: int, count: int, *, is_one: bool) -> None:
    """Start a cluster by the command, fork it again and again, and stop all."""
    flags = ["--one-process"] if is_one else []
    nodes = f"--nodes={max(3, pods // 100)}"
    run("up", "--detach", "--name", NAME, "--secure-port=0", "--profile=minimal", nodes, *flags)
    try:
        path = Path(run("kubeconfig", "--path", "--name", NAME).strip())
        fill(mockube.connect(kubeconfig=path), pods)
        forks = [measure_named(path, f"{NAME}-{number}") for number in range(count)]
        print(f"Fork, until the answer           {report([fork for fork, _ in forks])}")
        print(f"first request with its connection {report([first for _, first in forks])}")
    finally:
        run("down", "--name", NAME, "--delete")
        for number in range(count):
            run("down", "--name", f"{NAME}-{number}", "--delete")


def measure_named(parent: Path, name: str) -> tuple[float, float]:
    """Create a Fork, and return how long it and a first request to it took; stop it."""
    body = {"apiVersion": "control.mockube.dev/v1alpha1", "kind": "Fork", "spec": {"name": name}}
    made, fork = timed(lambda: send(parent, "POST", "/apis/control.mockube.dev/v1alpha1/forks", body))
    path = Path(made["status"]["kubeconfig"])
    _, first = timed(lambda: send(path, "GET", "/apis/apps/v1/namespaces/default/deployments/web"))
    run("down", "--name", name)
    return fork, first


def send(path: Path, method: str, target: str, body: object = None):  # noqa: ANN201 - of any type
    access = kubeconfig.read(path)
    url = urlsplit(access.server)
    trust = ssl.create_default_context(cadata=access.authority.decode())
    connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=trust, timeout=60)
    headers = {"Authorization": f"Bearer {access.token}", "Content-Type": "application/json"}
    connection.request(method, target, headers=headers, body=json.dumps(body) if body else None)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    if response.status >= http.client.BAD_REQUEST:
        raise SystemExit(answer["message"])
    return answer


def run(*arguments: str) -> str:
    command = [sys.executable, "-m", "mockube", *arguments]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def fill(cluster: Cluster, pods: int) -> None:
    """Run pods, and wait until nothing changes any more."""
    spec = {"containers": [{"name": "c", "image": "nginx"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "replicas": pods,
                "selector": {"matchLabels": {"app": "web"}},
                "template": template,
            },
        }
    )
    cluster.wait("Deployment", "web", lambda found: found["status"].get("readyReplicas", 0) == pods, 300)
    time.sleep(5)


def measure_one_after_another(cluster: Cluster, count: int) -> None:
    ready, first, stop, private = [], [], [], []
    before = processor_seconds()
    for _ in range(count):
        fork, seconds = timed(cluster.fork)
        ready.append(seconds)
        stop.append(timed(fork.stop)[1])
    spent = [after - earlier for after, earlier in zip(processor_seconds(), before, strict=True)]
    for _ in range(10):
        fork = cluster.fork()
        first.append(timed(lambda used=fork: used.get("Deployment", "web"))[1])
        private.append(private_megabytes(fork))
        fork.stop()
    print(f"fork, until it accepts requests  {report(ready)}")
    print(f"its first request                {report(first)}")
    print(f"stop                             {report(stop)}")
    print(
        f"processor time of fork and stop  {sum(spent) / count * 1000:.1f} ms, of which parent {spent[0] / count * 1000:.1f}"
    )
    print(f"memory of its own                {statistics.median(private):.0f} MB after a request")


def measure_at_once(cluster: Cluster, count: int) -> None:
    """Fork many times while another thread sends requests to the parent."""
    seconds: list[float] = []
    is_done = threading.Event()

    def send_requests() -> None:
        while not is_done.is_set():
            seconds.append(timed(lambda: cluster.get("Deployment", "web"))[1])

    sender = threading.Thread(target=send_requests)
    sender.start()
    forks, taken = timed(lambda: [cluster.fork() for _ in range(count)])
    is_done.set()
    sender.join()
    print(
        f"{count} forks that all run          {taken:.1f} s; requests to the parent meanwhile {report(seconds)}"
    )
    print(f"stop of all                      {timed(lambda: [fork.stop() for fork in forks])[1]:.1f} s")


def timed(function):  # noqa: ANN001, ANN201 - of any type
    began = time.perf_counter()
    result = function()
    return result, time.perf_counter() - began


def processor_seconds() -> Sequence[float]:
    """Return the processor time of this process and of its ended children."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return [usage.ru_utime + usage.ru_stime for usage in usages]


def private_megabytes(fork: ForkedCluster) -> float:
    pid = fork._running.process.pid  # noqa: SLF001 - only a benchmark needs it
    with open(f"/proc/{pid}/smaps_rollup") as lines:  # noqa: PTH123 - short
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty")) / 1024


def report(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    tail = ordered[int(len(ordered) * 0.99)]
    return f"median {statistics.median(ordered) * 1000:.1f} ms, 99 % {tail * 1000:.1f} ms, longest {ordered[-1] * 1000:.0f} ms"


if __name__ == "__main__":
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    main()
