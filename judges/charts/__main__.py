"""`make charts`: install, test, upgrade, roll back and uninstall public charts, and find mistakes in helm's own chart.

    python -m judges.charts --charts DIR --only redis,kafka --jobs 2

Without a folder of packaged charts, those of `charts.yaml` are pulled from the repositories that your helm knows. The exit code
is 1 if a step fails that `charts.yaml` does not list, if one passes that it lists, or if a mistake is not found.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from judges.charts.helm import Outcome, cluster, find_helm
from judges.charts.mistakes import read_mistakes, run_mistakes
from judges.charts.releases import STEPS, Chart, read_charts, run_release
from judges.choices import require_some

HERE = Path(__file__).parent
_NO_TESTS = "no tests"


def main() -> int:
    options = _options()
    helm = find_helm()
    unexpected = 0
    with tempfile.TemporaryDirectory(prefix="mockube-charts-") as text:
        folder = Path(text)
        if not options.only:
            unexpected += find_mistakes(helm, folder, options)
        unexpected += run_charts(helm, folder, options)
    return int(bool(unexpected))


def find_mistakes(helm: Path, folder: Path, options) -> int:
    """Print which mistakes are found; return the number of the others."""
    mistakes = read_mistakes(HERE / "mistakes.yaml")
    with cluster(helm, options.flags) as running:
        problems = run_mistakes(running, helm, folder, mistakes, options.jobs * 4)
    for name, problem in problems.items():
        print(f"{'FAIL' if problem else 'ok  '} {name}{': ' if problem else ''}{problem[:500]}")
    found = sum(not problem for problem in problems.values())
    print(
        f"{found} of {len(problems)} as on a real cluster (mistakes, and the chart without one)\n", flush=True
    )
    return len(problems) - found


def run_charts(helm: Path, folder: Path, options) -> int:
    """Print a table of the charts' steps; return the number of unexpected results."""
    settings = yaml.safe_load((HERE / "charts.yaml").read_text())
    source = Path(options.charts) if options.charts else _pull(helm, folder, settings, options.only)
    sources = {name: fields.pop("source") for name, fields in settings.items()}
    charts = {chart.name: chart for chart in read_charts(source, settings)}
    chosen = [chart for name, chart in charts.items() if not options.only or name in options.only]
    require_some(chosen, f"no chart is named {' or '.join(options.only)}")
    print(f"{'chart':24} {'version':10} {' '.join(f'{step:>10}' for step in STEPS)}", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        results = pool.map(lambda chart: _run(helm, folder, chart, charts, options), chosen)
        unexpected = sum(_print_row(chart, outcomes) for chart, outcomes in zip(chosen, results, strict=True))
    print(
        f"{len(chosen)} of the {len(sources)} listed charts and others; {unexpected} results are unexpected"
    )
    return unexpected


def _pull(helm: Path, folder: Path, settings: Mapping[str, Any], only: Sequence[str]) -> Path:
    pulled = folder / "pulled"
    pulled.mkdir()
    for name, fields in settings.items():
        if not only or name in only:
            command = [helm, "pull", fields["source"], f"--destination={pulled}"]
            if subprocess.run(command, check=False).returncode:
                raise SystemExit(
                    f"{fields['source']} cannot be pulled: add its repository to helm, or set CHARTS=DIR"
                )
    return pulled


def _run(helm: Path, folder: Path, chart: Chart, charts: Mapping[str, Chart], options) -> dict[str, Outcome]:
    # A chart's webhooks lead to simulated pods, which cannot review what another chart creates.
    with cluster(helm, options.flags) as running:
        for needed in (charts[name] for name in chart.needs):
            outcome = run_release(
                running, needed, _write_values(folder, needed), timeout=options.timeout, steps=STEPS[:1]
            )
            if not outcome["install"].succeeded:
                return outcome
        return run_release(running, chart, _write_values(folder, chart), timeout=options.timeout)


def _write_values(folder: Path, chart: Chart) -> Path:
    path = folder / f"{chart.name}.yaml"
    path.write_text(yaml.safe_dump(dict(chart.values)))
    return path


def _print_row(chart: Chart, outcomes: Mapping[str, Outcome]) -> int:
    """Print the row of a chart and why steps failed; return the number of unexpected results."""
    cells = [_cell(step, outcomes.get(step)) for step in STEPS]
    print(f"{chart.name:24} {chart.version:10} {' '.join(f'{cell:>10}' for cell in cells)}", flush=True)
    unexpected = 0
    for step in STEPS:
        fails = step in outcomes and not outcomes[step].succeeded
        if fails:
            print(f"    {step}: {outcomes[step].message[-600:]}", flush=True)
        if fails != (step in chart.failures):
            unexpected += 1
            print(
                f"    {step}: {'is not listed as failing' if fails else 'is listed as failing'}", flush=True
            )
    return unexpected


def _cell(step: str, outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    if step == "test" and "TEST SUITE: None" in outcome.output.replace("  ", " "):
        return _NO_TESTS
    return f"{outcome.seconds:.0f} s" if outcome.succeeded else "FAIL"


def _options():
    parser = argparse.ArgumentParser(prog="python -m judges.charts", description=__doc__.partition("\n")[0])
    parser.add_argument("--charts", help="a folder of packaged charts (*.tgz)")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), default=[], help="names of charts, with commas"
    )
    parser.add_argument(
        "--jobs", type=int, default=2, help="how many charts run at a time, each in its own cluster"
    )
    parser.add_argument("--timeout", type=int, default=180, help="seconds after which a step has failed")
    parser.add_argument("flags", nargs="*", help="further flags of `mockube up`, after --")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
