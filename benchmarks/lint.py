"""The time of `mockube lint` for 200 objects against all minors, as processes: accepted objects, and objects with findings."""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

APPLICATIONS = 40
"""Each has five objects."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    for title, objects in (("accepted", accepted_objects()), ("with findings", objects_with_findings())):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump_all(objects, file)
            file.flush()
            print(f"{title}: {measure(Path(file.name), runs)}")


def measure(file: Path, runs: int) -> str:
    """Return the medians of the wall and CPU time, and the last line of the output."""
    command = [sys.executable, "-m", "mockube", "lint", str(file)]
    walls, cpus, summary = [], [], ""
    for _ in range(runs):
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.monotonic() - began)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        summary = finished.stdout.splitlines()[-1]
    return f"{statistics.median(walls):.2f} s, {statistics.median(cpus):.2f} s of CPU time: {summary}"


def accepted_objects() -> Sequence[dict[str, Any]]:
    return [each for number in range(APPLICATIONS) for each in application(f"web-{number}")]


def objects_with_findings() -> Iterator[dict[str, Any]]:
    """Yield the same objects with a negative number, a misspelt field, a newer field, or a removed API."""
    for tree in accepted_objects():
        match tree["kind"]:
            case "Deployment":
                tree["spec"]["replicas"] = -1
                tree["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
            case "Service":
                tree["spec"]["trafficDistribution"] = "PreferClose"
            case "Ingress":
                tree["apiVersion"] = "networking.k8s.io/v1beta1"
        yield tree


def application(name: str) -> Iterator[dict[str, Any]]:
    metadata = {"name": name, "namespace": "shop"}
    labels = {"app": name}
    container = {
        "name": "main",
        "image": "nginx:1.27",
        "ports": [{"containerPort": 80}],
        "env": [{"name": f"VARIABLE_{number}", "value": "x"} for number in range(10)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
        "volumeMounts": [{"name": "settings", "mountPath": "/settings"}],
    }
    pod = {
        "serviceAccountName": name,
        "containers": [container],
        "volumes": [{"name": "settings", "configMap": {"name": name}}],
    }
    backend = {"service": {"name": name, "port": {"number": 80}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    }
    data = {f"key-{number}": "x" * 100 for number in range(20)}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    yield {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": {"rules": [{"host": f"{name}.example.com", "http": {"paths": [path]}}]},
    }


if __name__ == "__main__":
    main()
