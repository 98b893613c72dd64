"""Fetch the CustomResourceDefinitions and samples that projects publish in their Go modules, into a folder that git ignores.

    make definitions

Names and versions are pinned below; the Go command checks what it fetches by its database of checksums.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).parents[1] / ".definitions"
SECONDS: Final = 120


class Project(NamedTuple):
    module: str
    """With its version."""
    definitions: str
    """The folder, or the file, where the definitions are."""
    samples: tuple[str, ...] = ()
    """Patterns of files with objects of these kinds."""


PROJECTS: Final = {
    "argo-rollouts": Project(
        "github.com/argoproj/argo-rollouts@v1.8.3", "manifests/crds", ("examples/*.yaml",)
    ),
    "cert-manager": Project(
        "github.com/cert-manager/cert-manager@v1.18.2",
        "deploy/crds",
        ("test/fixtures/cert-manager-resources.yaml",),
    ),
    "cluster-api": Project("sigs.k8s.io/cluster-api@v1.10.3", "config/crd/bases"),
    "crossplane": Project(
        "github.com/crossplane/crossplane@v1.20.0",
        "cluster/crds",
        ("test/e2e/manifests/apiextensions/*/*/setup/definition.yaml",),
    ),
    "gateway-api": Project(
        "sigs.k8s.io/gateway-api@v1.3.0", "config/crd/standard", ("examples/standard/*.yaml",)
    ),
    "istio": Project("istio.io/api@v1.26.2", "kubernetes/customresourcedefinitions.gen.yaml"),
    "keda": Project(
        "github.com/kedacore/keda/v2@v2.17.2",
        "config/crd/bases",
        ("config/samples/*trigger*.yaml", "config/samples/*scaledobject*.yaml"),
    ),
    "knative": Project(
        "knative.dev/serving@v0.45.0", "config/core/300-resources", ("test/performance/benchmarks/**/*.yaml",)
    ),
    "kyverno": Project(
        "github.com/kyverno/kyverno@v1.14.4", "config/crds/kyverno", ("test/cli/test/*/policy.yaml",)
    ),
    "prometheus-operator": Project(
        "github.com/prometheus-operator/prometheus-operator@v0.83.0",
        "example/prometheus-operator-crd",
        ("example/user-guides/getting-started/*.yaml", "example/user-guides/alerting/*.yaml"),
    ),
}


class FetchError(Exception):
    """A module is not to be had, or not in time."""


def download(module: str, folder: Path, *, seconds: float = SECONDS) -> Path:
    """Return where the files of a module are."""
    command = ["go", "mod", "download", "-json", module]
    try:
        completed = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"{module} was not fetched: {error}") from error
    answer: dict[str, Any] = json.loads(completed.stdout or b"{}")
    if "Dir" not in answer:
        raise FetchError(f"{module} was not fetched: {answer.get('Error') or completed.stderr.decode()}")
    return Path(answer["Dir"])


def fetch(name: str, project: Project, folder: Path, *, seconds: float = SECONDS) -> int:
    """Copy the files of a project, and return how many there are."""
    module = download(project.module, folder, seconds=seconds)
    source = module / project.definitions
    definitions = [source] if source.is_file() else sorted(source.glob("*.yaml"))
    samples = [file for pattern in project.samples for file in sorted(module.glob(pattern))]
    for part, files in (("definitions", definitions), ("samples", samples)):
        for number, file in enumerate(files):
            target = folder / name / part / f"{number:03}-{file.name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            text = file.read_text()
            if part == "definitions":  # Helm's templates: labels alone
                text = "".join(line for line in text.splitlines(keepends=True) if "{{" not in line)
            target.write_text(text)
    return len(definitions) + len(samples)


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name, project in PROJECTS.items():
        try:
            print(f"{name}: {fetch(name, project, FOLDER)} files of {project.module}")
        except FetchError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
