"""Generate the rules and dashboards of kubernetes-mixin for `deploy/prometheus` and `deploy/grafana`.

    python -m tools.mixin CHECKOUT

CHECKOUT is a folder with a release of kubernetes-mixin (Apache License 2.0), whose `vendor` folder has its libraries: run
`jb install` there. It needs the program `jsonnet`. Windows and kube-proxy are left out, because mockube has neither.
"""

import argparse
import json
import re
import shutil
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
RULES = ROOT / "deploy" / "prometheus" / "mixin"
DASHBOARDS = ROOT / "deploy" / "grafana" / "dashboards"
_WITHOUT = re.compile(r"windows|^proxy|kube-proxy", re.IGNORECASE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mixin", description=__doc__)
    parser.add_argument("checkout", type=Path)
    checkout: Path = parser.parse_args().checkout
    if shutil.which("jsonnet") is None:
        raise SystemExit("the program jsonnet is not installed: apt-get install jsonnet")
    RULES.mkdir(exist_ok=True)
    DASHBOARDS.mkdir(parents=True, exist_ok=True)
    for kind in ("rules", "alerts"):
        groups = yaml.safe_load(_jsonnet(checkout, "-S", f"lib/{kind}.jsonnet"))["groups"]
        chosen = {"groups": [group for group in groups if not _WITHOUT.search(group["name"])]}
        (RULES / f"{kind}.yml").write_text(yaml.safe_dump(chosen, sort_keys=False, width=1000))
    dashboards: dict[str, object] = json.loads(_jsonnet(checkout, "lib/dashboards.jsonnet"))
    for old in DASHBOARDS.glob("*.json"):
        old.unlink()
    for name, dashboard in dashboards.items():
        if not _WITHOUT.search(name):
            (DASHBOARDS / name).write_text(json.dumps(dashboard, separators=(",", ":")) + "\n")


def _jsonnet(checkout: Path, *arguments: str) -> str:
    command = ["jsonnet", "-J", "vendor", *arguments]
    return subprocess.run(command, cwd=checkout, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
