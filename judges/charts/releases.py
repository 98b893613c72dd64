"""The life of a chart's release: install, test, upgrade, roll back, uninstall; and what is left of it."""

import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from judges.charts.helm import Cluster, Outcome

STEPS = ("install", "test", "upgrade", "rollback", "uninstall")
_OWNED = "pods,services,deployments.apps,statefulsets.apps,daemonsets.apps,replicasets.apps,jobs.batch"
"""The kinds of which an uninstalled release leaves no object; claims, and what hooks created, may stay."""


class Chart(NamedTuple):
    """A packaged chart, and how it is installed."""

    name: str
    version: str
    path: Path
    namespace: str = "charts"
    values: Mapping[str, Any] = {}
    needs: Sequence[str] = ()
    """The charts that are installed before it."""
    failures: Mapping[str, str] = {}
    """The reasons of the steps that are known to fail."""


def read_charts(folder: Path, settings: Mapping[str, Mapping[str, Any]]) -> list[Chart]:
    """Return the packaged charts of a folder, with their settings by name."""
    charts = []
    for path in sorted(folder.glob("*.tgz")):
        about = _about(path)
        if about.get("type") != "library":
            own = settings.get(about["name"], {})
            charts.append(Chart(name=about["name"], version=str(about["version"]), path=path, **own))
    return charts


def _about(path: Path) -> Mapping[str, Any]:
    with tarfile.open(path) as archive:
        for member in archive:
            if member.name.count("/") == 1 and member.name.endswith("/Chart.yaml"):
                content = archive.extractfile(member)
                assert content is not None
                return yaml.safe_load(content.read())
    raise SystemExit(f"{path} is not a packaged chart")


def run_release(
    cluster: Cluster, chart: Chart, values: Path, *, timeout: int, steps: Sequence[str] = STEPS
) -> dict[str, Outcome]:
    """Run the steps of a release until its installation fails; a release that cannot be tested is still upgraded."""
    common = (chart.name, f"--namespace={chart.namespace}")
    source = (*common[:1], str(chart.path), *common[1:], f"--values={values}", "--wait")
    commands = {
        "install": ("install", *source, "--create-namespace"),
        "test": ("test", *common),
        "upgrade": ("upgrade", *source),
        "rollback": ("rollback", common[0], "1", common[1], "--wait"),
        "uninstall": ("uninstall", *common, "--wait"),
    }
    outcomes: dict[str, Outcome] = {}
    for step in steps:
        outcomes[step] = cluster.helm(*commands[step], timeout=timeout)
        if step == "install" and not outcomes[step].succeeded:
            output = "; ".join([outcomes[step].output, *unready(cluster, chart.namespace)])
            outcomes[step] = outcomes[step]._replace(output=output)
            break
    if "uninstall" in outcomes and (left := left_objects(cluster, chart)):
        outcomes["uninstall"] = outcomes["uninstall"]._replace(
            succeeded=False, output=f"it leaves {', '.join(left)}"
        )
    return outcomes


def left_objects(cluster: Cluster, chart: Chart) -> list[str]:
    """Return what is left of a release that helm has uninstalled."""
    annotation = "meta.helm.sh/release-name"
    return [
        f"{item['kind']} {item['metadata']['name']}"
        for item in cluster.items(_OWNED, chart.namespace)
        if item["metadata"].get("annotations", {}).get(annotation) == chart.name
    ]


def unready(cluster: Cluster, namespace: str) -> list[str]:
    """Return the pods that are not ready, with the reason of each and its last Warning event."""
    events = {
        event["involvedObject"].get("name"): f"{event['reason']}: {event['message']}"
        for event in cluster.items("events", namespace)
        if event.get("type") == "Warning"
    }
    pods = [pod for pod in cluster.items("pods", namespace) if _is_unready(pod)]
    names = {pod["metadata"]["name"] for pod in pods}
    waiting = [f"{pod['metadata']['name']} {' '.join(_reasons(pod))}".strip() for pod in pods]
    warnings = [f"{name}: {text}" for name, text in events.items() if name in names or not names]
    return [*waiting, *warnings]


def _is_unready(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status", {})
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in status.get("conditions", ())
    )
    return not ready and status.get("phase") != "Succeeded"


def _reasons(pod: Mapping[str, Any]) -> list[str]:
    states = [
        state
        for field in ("initContainerStatuses", "containerStatuses")
        for status in pod["status"].get(field, ())
        for state in status["state"].values()
    ]
    return [state["reason"] for state in states if "reason" in state]
