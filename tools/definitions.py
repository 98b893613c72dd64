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
    samples: str = ""


PROJECTS: Final = {
    "argo-rollouts": Project("github.com/argoproj/argo-rollouts@v1.8.3", "manifests/crds", "examples"),
    "cert-manager": Project("github.com/cert-manager/cert-manager@v1.18.2", "deploy/crds"),
    "cluster-api": Project("sigs.k8s.io/cluster-api@v1.10.3", "config/crd/bases"),
    "crossplane": Project("github.com/crossplane/crossplane@v1.20.0", "cluster/crds"),
    "gateway-api": Project("sigs.k8s.io/gateway-api@v1.3.0", "config/crd/standard", "examples/standard"),
    "istio": Project("istio.io/api@v1.26.2", "kubernetes/customresourcedefinitions.gen.yaml"),
    "keda": Project("github.com/kedacore/keda/v2@v2.17.2", "config/crd/bases"),
    "knative": Project("knative.dev/serving@v0.45.0", "config/core/300-resources"),
    "kyverno": Project("github.com/kyverno/kyverno@v1.14.4", "config/crds/kyverno"),
    "prometheus-operator": Project(
        "github.com/prometheus-operator/prometheus-operator@v0.83.0", "example/prometheus-operator-crd"
    ),
}


def fetch(name: str, project: Project, folder: Path) -> int:
    """Copy the files of a project, and return how many there are."""
    command = ["go", "mod", "download", "-json", project.module]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=SECONDS)
    answer: dict[str, Any] = json.loads(done.stdout or b"{}")
    if "Dir" not in answer:
        sys.exit(f"{project.module} was not fetched: {answer.get('Error') or done.stderr.decode()}")
    copied = 0
    for part, place in (("definitions", project.definitions), ("samples", project.samples)):
        source = Path(answer["Dir"], place)
        files = [source] if source.is_file() else sorted(source.glob("*.yaml")) if place else []
        for file in files:
            target = folder / name / part / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            text = file.read_text()
            if part == "definitions":  # Helm's templates: labels alone
                text = "".join(line for line in text.splitlines(keepends=True) if "{{" not in line)
            target.write_text(text)
        copied += len(files)
    return copied


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    for name, project in PROJECTS.items():
        print(f"{name}: {fetch(name, project, FOLDER)} files of {project.module}")


if __name__ == "__main__":
    main()
