"""Make the pictures of the page and of a report for README.md and docs/guides: `python -m tools.page_pictures`.

It starts a cluster, does in it what the pictures show, and takes pictures with Chromium. `--all FOLDER` writes each view in light and dark
colours, wide and narrow, to look at after a change of the page.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from playwright.sync_api import sync_playwright

from mockube.connection import Connection, connect
from tools.browser import find_browser
from tools.packages import ROOT

IMAGES: Final = ROOT / "docs/images"
CLUSTER: Final = "page-pictures"
SIZES: Final = {"wide": (1280, 760), "narrow": (390, 844)}
VIEWS: Final = {
    "health": "#/health",
    "cluster": "#/cluster",
    "cluster-pod": "#/cluster?select=pods|shop|cart-0&tab=overview",
    "objects": "#/objects?ns=shop&select=deployments.apps|shop|web&tab=yaml",
    "changes": "#/objects?ns=shop&select=deployments.apps|shop|web&tab=changes",
    "why": "#/objects?ns=shop&select=pods|shop|cart-0&tab=why",
    "act": "#/objects?ns=shop&select=deployments.apps|shop|web&tab=actions",
    "timeline": "#/timeline?ns=shop",
    "activity": "#/activity",
    "controllers": "#/controllers",
    "logs": "#/objects?ns=shop&select=pods|shop|printer&tab=logs",
    "shell": "#/objects?ns=shop&select=pods|shop|printer&tab=shell",
    "node": "#/cluster?select=nodes||node-1&tab=actions",
}
SHOWN: Final = (
    ("health", "light"),
    ("cluster", "dark"),
    ("objects", "light"),
    ("timeline", "light"),
    ("timeline", "dark"),
    ("activity", "light"),
    ("controllers", "light"),
)
"""The views of the pages of documentation, with their colours."""
REPORT: Final = {"summary": "#/summary?ns=shop"}
"""The views of a report, of which the documentation has the light and wide one."""
_LOADED_SECONDS: Final = 2.0
_PLOT_SECONDS: Final = 30.0

WORKLOADS: Final = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.27", resources: {requests: {cpu: "2"}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: search, namespace: shop, labels: {app: search}}
spec:
  replicas: 4
  selector: {matchLabels: {app: search}}
  template:
    metadata: {labels: {app: search}}
    spec: {containers: [{name: search, image: "registry.invalid/search:2", resources: {requests: {cpu: "1"}}}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: cart, namespace: shop, labels: {app: cart}}
spec:
  replicas: 2
  serviceName: cart
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec: {containers: [{name: cart, image: "nginx:1.27", resources: {requests: {cpu: "500"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: printer, namespace: shop}
spec: {containers: [{name: main, image: busybox, command: [sh, -c, "while true; do date; sleep 1; done"]}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: import, namespace: shop}
spec:
  completions: 6
  parallelism: 2
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, command: [sleep, "2"]}]}}
"""


def mockube(*arguments: str) -> str:
    command = [sys.executable, "-m", "mockube", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextmanager
def running_cluster() -> Iterator[Connection]:
    mockube("up", "--detach", f"--name={CLUSTER}", "--simulate-nodes=18", "--secure-port=0", "--history=all")
    try:
        with connect(CLUSTER) as cluster:
            yield cluster
    finally:
        mockube("down", f"--name={CLUSTER}")


def fill(cluster: Connection) -> None:
    """Do what the pictures show: workloads of which one cannot pull its image and one cannot be scheduled, and two changes."""
    cluster.apply(WORKLOADS)
    cluster.wait("Deployment", "web", "Available", namespace="shop")
    mockube("mark", "before-release", f"--name={CLUSTER}")
    cluster.patch("Deployment", "web", {"spec": {"replicas": 9}}, namespace="shop")
    time.sleep(3)
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}}}
    cluster.patch("Deployment", "web", image, namespace="shop")
    cluster.wait("Job", "import", "Complete", namespace="shop")
    time.sleep(5)


def take(playwright: Any, report: Path, path_of: Callable[[str, str, str], Path | None]) -> None:
    """Take the pictures that have a path, by view, colours and width, also of a report."""
    program = find_browser()
    assert program is not None, "there is no browser: run `make browser`"
    browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
    for scheme in ("light", "dark"):
        for width, (x, y) in SIZES.items():
            context = browser.new_context(
                viewport={"width": x, "height": y}, color_scheme=scheme, ignore_https_errors=True
            )
            tab = context.new_page()
            tab.goto(mockube("ui", "--no-open", f"--name={CLUSTER}"))
            tab.get_by_role("navigation", name="Views").wait_for()
            tab.get_by_text("Reading the objects").wait_for(state="detached")
            _take_views(tab, VIEWS, lambda view: path_of(view, scheme, width))  # noqa: B023 - it is called at once
            tab.goto(f"file://{report}")
            tab.get_by_role("navigation", name="Views").wait_for()
            _take_views(tab, REPORT, lambda view: path_of(view, scheme, width))  # noqa: B023 - as above
            context.close()
    browser.close()


def _take_views(tab: Any, views: Mapping[str, str], path_of: Callable[[str], Path | None]) -> None:
    for view, fragment in views.items():
        path = path_of(view)
        if path is None:
            continue
        tab.evaluate("fragment => { location.hash = fragment; }", fragment)
        tab.wait_for_timeout(_seconds_of(view) * 1000)
        tab.screenshot(path=path)


def _seconds_of(view: str) -> float:
    """Return how long a view is open before its picture is taken: some draw only what has happened since then."""
    if view != "controllers":
        return _LOADED_SECONDS
    mockube("kubectl", f"--name={CLUSTER}", "--namespace=shop", "rollout", "restart", "deployment/web")
    return _PLOT_SECONDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="write all pictures there")
    folder = parser.parse_args().all
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)

    def path_of(view: str, scheme: str, width: str) -> Path | None:
        if folder is not None:
            return folder / f"{view}-{scheme}-{width}.png"
        if view in REPORT:
            is_shown_report = (scheme, width) == ("light", "wide")
            return IMAGES / f"report-{view}-{scheme}.png" if is_shown_report else None
        is_shown = width == "wide" and (view, scheme) in SHOWN
        return IMAGES / f"page-{view}-{scheme}.png" if is_shown else None

    with (
        running_cluster() as cluster,
        sync_playwright() as playwright,
        TemporaryDirectory() as folder_of_report,
    ):
        fill(cluster)
        report = Path(folder_of_report) / "report.html"
        mockube("report", f"--output={report}", f"--name={CLUSTER}")
        take(playwright, report, path_of)


if __name__ == "__main__":
    main()
