"""Mistakes in the chart that `helm create` makes: each must fail, and the cluster must say why."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from judges.charts.helm import Cluster, Outcome
from judges.charts.releases import unready

NAME = "web"
RIGHT = "no mistake"
_FOREVER_SECONDS = 20
"""A release that is not ready by then has failed. Most mistakes are reported at once, and a probe's after 10 seconds."""


class Mistake(NamedTuple):
    name: str
    says: str
    values: Mapping[str, Any] = {}
    edits: Mapping[str, Sequence[str]] = {}
    """A text of a template and the one that replaces it, by the template's path."""
    step: str = "install"


def read_mistakes(path: Path) -> list[Mistake]:
    return [Mistake(name=name, **fields) for name, fields in yaml.safe_load(path.read_text()).items()]


def run_mistakes(
    cluster: Cluster, helm: Path, folder: Path, mistakes: Sequence[Mistake], jobs: int
) -> dict[str, str]:
    """Return why a mistake is not found, or "", by its name. The chart without a mistake must become ready."""
    with ThreadPoolExecutor(jobs) as pool:
        results = pool.map(
            lambda mistake: _run(cluster, helm, folder, mistake), [Mistake(RIGHT, ""), *mistakes]
        )
        return dict(zip([RIGHT, *(mistake.name for mistake in mistakes)], results, strict=True))


def _run(cluster: Cluster, helm: Path, folder: Path, mistake: Mistake) -> str:
    namespace = re.sub(r"[^a-z0-9]+", "-", mistake.name.lower())
    chart = _make_chart(helm, folder / namespace, mistake)
    installed = cluster.helm(
        "install",
        NAME,
        str(chart),
        "--create-namespace",
        "--wait",
        f"--namespace={namespace}",
        timeout=_FOREVER_SECONDS if mistake.step == "install" and mistake.says else 120,
    )
    outcomes = {"install": installed}
    if installed.succeeded:
        outcomes["test"] = cluster.helm("test", NAME, f"--namespace={namespace}", "--logs", timeout=60)
    return _judge(mistake, outcomes, unready(cluster, namespace))


def _judge(mistake: Mistake, outcomes: Mapping[str, Outcome], reasons: Sequence[str]) -> str:
    failed = next((step for step, outcome in outcomes.items() if not outcome.succeeded), "")
    expected = mistake.step if mistake.says else ""
    text = "; ".join([*(outcome.output for outcome in outcomes.values()), *reasons])
    if failed != expected:
        return f"{failed or 'no step'} fails in place of {expected or 'none'}: {text}"
    return "" if mistake.says in text else f"the cluster does not say {mistake.says!r}: {text}"


def _make_chart(helm: Path, folder: Path, mistake: Mistake) -> Path:
    folder.mkdir()
    subprocess.run([helm, "create", NAME], cwd=folder, check=True, capture_output=True)
    chart = folder / NAME
    for path, (old, new) in mistake.edits.items():
        template = (chart / path).read_text()
        if old not in template:
            raise SystemExit(f"the chart of this helm has no {old!r} in {path}")
        (chart / path).write_text(template.replace(old, new))
    values = yaml.safe_load((chart / "values.yaml").read_text())
    (chart / "values.yaml").write_text(yaml.safe_dump(_merged(values, mistake.values)))
    return chart


def _merged(values: Any, changes: Any) -> Any:
    if not isinstance(values, dict) or not isinstance(changes, dict):
        return changes
    return {**values, **{name: _merged(values.get(name), change) for name, change in changes.items()}}
