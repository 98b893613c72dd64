"""`make e2e` runs the official Kubernetes conformance suite against a mockube cluster.

    python -m judges.e2e --focus 'sig-apps' --jobs 2

A spec that `passing.txt` lists and that fails makes the exit code 1. The specs that `failing.yaml` lists, with the reason, are
left out unless `--all` is given or `--focus` names them. `--update` rewrites `passing.txt` with what passes now as well.
The pods of some specs run as processes, with `--processes` those of all, in networks of their own: they use `nc` of OpenBSD, `curl`, `dig` and
`nslookup` of this machine, which are looked for first.
`--minor 1.36` runs the suite of an older minor against a cluster of that minor; its lists are in the folder `1.36`.
"""

import argparse
import contextlib
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from judges.choices import require_some
from judges.e2e.suite import Result, Suite
from mockube.apimachinery.schema import minors
from tests.support.processes.commands import Mockube
from tests.support.processes.process import ROOT
from tests.support.stores.etcd_server import etcd_binary
from tools.needed import require_programs

HERE = Path(__file__).parent
PER_PROCESS = 12
"""How many specs one process of the suite runs at most: it takes seconds to start."""
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:*"
PAUSE = "registry.k8s.io/pause:*"
SHELLS = [f"registry.k8s.io/e2e-test-images/{name}:*" for name in ("busybox", "glibc-dns-testing")]
"""Images of whose programs this machine has its own."""
PROGRAMS = ("nc", "curl", "dig", "nslookup")
"""The programs of this machine that the pods of processes run."""
SERVING = re.compile(
    r"AdmissionWebhook|CustomResourceConversionWebhook|CustomResourceFieldSelectors|Sample API Server|mTLS connection"
    r"|should be restarted with a (/healthz http|GRPC) liveness probe|monotonically increasing restart count"
)
"""Specs whose pods answer the API server or probes: their image runs as processes, and all others are simulated."""
STRICT = re.compile(r"should support proportional scaling")
"""Specs that need an image that does not exist: in their cluster, images that are not known cannot be pulled."""


def main() -> int:
    options = _options()
    built = ROOT / "build" / "e2e" / options.minor
    suite = Suite(Path(options.suite or built), options.minor)
    suite.build()
    passing = read_passing(options.minor)
    failing = {spec for specs in read_failing(options.minor).values() for spec in specs}
    specs = [
        spec
        for spec in suite.conformance_specs()
        if (options.focus and re.search(options.focus, spec))
        or (not options.focus and (options.all or spec not in failing))
    ]
    require_some(specs, f"no conformance spec matches --focus={options.focus}")
    folder = Path(options.output or built / "reports").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    strict = [spec for spec in specs if STRICT.search(spec)]
    serving = [spec for spec in specs if (options.processes or SERVING.search(spec)) and spec not in strict]
    if serving and not options.kubeconfig:
        require_programs(*PROGRAMS)
    others = [spec for spec in specs if spec not in (*serving, *strict)]
    results = run_in_cluster(suite, others, folder, options, jobs=options.jobs)
    # Without networks of their own, their pods listen on the same ports.
    jobs = options.jobs if options.processes else 1
    images = local_images(suite) if serving else None
    results |= run_in_cluster(suite, serving, folder / "serving", options, jobs=jobs, images=images)
    results |= run_in_cluster(
        suite, strict, folder / "strict", options, jobs=1, flags=["--unknown-images=fail"]
    )
    status, passed = report(specs, passing, results)
    if options.update:
        path = lists(options.minor) / "passing.txt"
        path.write_text("".join(f"{spec}\n" for spec in sorted(passed.union(passing))))
    return status


def run_in_cluster(
    suite: Suite,
    specs: Sequence[str],
    folder: Path,
    options,
    *,
    jobs: int,
    images: Mapping[str, object] | None = None,
    flags: Sequence[str] = (),
) -> dict[str, Result]:
    """Run specs in an existing cluster, or in a new one."""
    if not specs:
        return {}
    own = contextlib.nullcontext(options.kubeconfig)
    with own if options.kubeconfig else cluster(options.minor, images, flags) as kubeconfig:
        return run(suite, specs, Path(kubeconfig), folder, options, jobs=jobs)


def run(
    suite: Suite, specs: Sequence[str], kubeconfig: Path, folder: Path, options, *, jobs: int
) -> dict[str, Result]:
    """Run specs in parallel, then those that must run alone."""
    serial = [spec for spec in specs if "[Serial]" in spec or "[Disruptive]" in spec]
    parallel = [spec for spec in specs if spec not in serial]
    results: dict[str, Result] = {}
    with ThreadPoolExecutor(jobs) as pool:
        size = min(PER_PROCESS, -(-len(parallel) // jobs)) or 1
        batches = [parallel[start : start + size] for start in range(0, len(parallel), size)]
        for found in pool.map(
            lambda pair: _run_all(suite, pair[1], kubeconfig, folder / f"{pair[0]}", options),
            enumerate(batches),
        ):
            results |= found
    return results | _run_all(suite, serial, kubeconfig, folder / "serial", options)


def _run_all(
    suite: Suite, specs: Sequence[str], kubeconfig: Path, folder: Path, options
) -> dict[str, Result]:
    """Start processes for specs until each spec has a result or a process returns none."""
    results: dict[str, Result] = {}
    for number in range(len(specs)):
        left = [spec for spec in specs if spec not in results]
        if not left:
            break
        found = suite.run(left, kubeconfig, folder / str(number), options.spec_timeout)
        for result in found.values():
            print(f"{'ok  ' if result.passed else 'FAIL'} {result.seconds:6.1f}s {result.spec}", flush=True)
        if not found:
            break
        results |= found
    return results


def local_images(suite: Suite) -> dict[str, object]:
    """Return the map of images whose containers run as processes: those of the suite's pods, and etcd."""
    files = {path: str(file.absolute()) for path, file in suite.agnhost_files.items()}
    agnhost = {"entrypoint": ["/agnhost"], "args": ["pause"], "directory": "/", "files": files}
    server = {"/sample-apiserver": str(suite.sample_apiserver.absolute())}
    return {
        AGNHOST: agnhost,
        PAUSE: agnhost,
        **{shell: {} for shell in SHELLS},
        "registry.k8s.io/e2e-test-images/sample-apiserver:*": {
            "entrypoint": ["/sample-apiserver"],
            "directory": "/",
            "files": server,
        },
        "registry.k8s.io/etcd:*": {"directory": "/", "files": {"/usr/local/bin/etcd": etcd_binary()}},
    }


@contextlib.contextmanager
def cluster(
    minor: str, images: Mapping[str, object] | None = None, more_flags: Sequence[str] = ()
) -> Iterator[Path]:
    """Start a cluster of a minor as `mockube up` does, on a free port; containers of some images may run as processes."""
    with tempfile.TemporaryDirectory(prefix="mockube-e2e-") as folder:
        mockube = Mockube(Path(folder))
        flags = [f"--kubernetes-version={minor}", *more_flags]
        if images is not None:
            path = Path(folder) / "images.yaml"
            path.write_text(yaml.safe_dump({"images": dict(images)}))
            flags += ["--container-runtime=process", f"--images={path}"]
        try:
            done = mockube.run(
                *(
                    "up",
                    "--detach",
                    "--name=e2e",
                    "--secure-port=0",
                    "--profile=minimal",
                    "--simulate-nodes=3",
                ),
                *flags,
            )
            if done.returncode:
                sys.exit(done.stderr)
            yield mockube.folder("e2e").kubeconfig
        finally:
            mockube.run("down", "--name=e2e")
            mockube.close()


def report(
    specs: Sequence[str], passing: Sequence[str], results: dict[str, Result]
) -> tuple[int, AbstractSet[str]]:
    """Print the results of each group, and return the exit code and the specs that passed."""
    passed = {spec for spec in specs if spec in results and results[spec].passed}
    of, good = (Counter(spec.partition("]")[0][1:] for spec in group) for group in (specs, passed))
    for group in sorted(of):
        print(f"{group:22} {good[group]:4} of {of[group]:4} pass")
    print(f"{'':22} {len(passed):4} of {len(specs):4} pass")
    lost = [spec for spec in passing if spec in specs and spec not in passed]
    for spec in lost:
        print(f"listed as passing, and fails: {spec}\n    {_message(results, spec)}")
    for spec in sorted(passed - set(passing)):
        print(f"passes, and is not listed: {spec}")
    return int(bool(lost)), passed


def _message(results: dict[str, Result], spec: str) -> str:
    result = results.get(spec)
    return result.message.strip().partition("\n")[0][:300] if result else "it was not run"


def lists(minor: str) -> Path:
    """Return the folder with the lists of specs of a minor."""
    return HERE if minor == minors.NEWEST else HERE / minor


def listed_minors() -> list[str]:
    return [minor for minor in minors.MINORS if (lists(minor) / "passing.txt").exists()]


def read_passing(minor: str) -> list[str]:
    """Return the specs that are known to pass."""
    return (lists(minor) / "passing.txt").read_text().splitlines()


def read_failing(minor: str) -> dict[str, list[str]]:
    """Return the specs that are known to fail, by reason."""
    return yaml.safe_load((lists(minor) / "failing.yaml").read_text())


def _options():
    parser = argparse.ArgumentParser(prog="python -m judges.e2e", description=__doc__.partition("\n")[0])
    parser.add_argument("--focus", help="run the specs whose names match this expression")
    parser.add_argument("--all", action="store_true", help="run those as well that are known to fail")
    parser.add_argument(
        "--processes",
        action="store_true",
        help="run the suite's images as processes in networks of their own for all specs, not only where they must be",
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many processes run specs at a time")
    parser.add_argument(
        "--spec-timeout", type=float, default=700.0, help="seconds after which a spec has failed"
    )
    parser.add_argument("--kubeconfig", help="of a cluster that runs, instead of one that is started")
    parser.add_argument(
        "--minor", choices=listed_minors(), default=minors.NEWEST, help="of the suite and the cluster"
    )
    parser.add_argument("--suite", help="the folder of the programs, once built")
    parser.add_argument("--output", help="a folder for logs and reports")
    parser.add_argument("--update", action="store_true", help="add to passing.txt what passes")
    return parser.parse_args()


if __name__ == "__main__":
    os.nice(10)
    sys.exit(main())
