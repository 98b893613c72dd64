"""What is read of a release's Go modules by programs in Go: `tools/gotypes` and `tools/openapi`."""

import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).parents[1]

TYPES = ("api", "apiextensions-apiserver", "apimachinery", "client-go", "kube-aggregator")
"""The modules that `tools/gotypes` reads."""
GENERATED = "pkg/generated/openapi/zz_generated.openapi.go"


@dataclass(frozen=True)
class Release:
    minor: str
    version: str
    others: Mapping[str, str] = field(default_factory=dict)
    """The versions of modules that there is none of that patch of."""

    def module(self, name: str) -> str:
        version = self.others.get(name, f"0.{self.version.partition('.')[2]}")
        return f"k8s.io/{name} v{version}"

    @property
    def source(self) -> Path:
        """The folder of k8s.io/kubernetes."""
        return download(f"k8s.io/kubernetes@v{self.version}")


@cache
def download(module: str) -> Path:
    module_info = json.loads(go("mod", "download", "-json", module, folder=Path(tempfile.gettempdir())))
    return Path(module_info["Dir"])


def go(*arguments: str, folder: Path, text: str = "") -> bytes:
    environment = os.environ | {"GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off"}
    command = ["nice", "go", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, input=text.encode()
    )
    return done.stdout


def go_types(release: Release) -> dict[str, Any]:
    """The output of `tools/gotypes` for a release."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for path in (TOOLS / "gotypes").glob("*.go"):
            shutil.copy(path, folder)
        write_module(folder, [release.module(name) for name in TYPES])
        types: dict[str, Any] = json.loads(go("run", ".", folder=folder))
        return types


def additions(release: Release) -> dict[str, Any]:
    """The output of `tools/openapi` for a release.

    All but the file of definitions is left behind: most of what k8s.io/kubernetes needs is not needed for it.
    """
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "openapi").mkdir()
        own = (TOOLS / "openapi/main.go").read_text()
        (folder / "main.go").write_text(own.replace("k8s.io/kubernetes/pkg/generated/openapi", "own/openapi"))
        source = (release.source / GENERATED).read_text()
        (folder / "openapi" / "definitions.go").write_text(re.sub(r"(?m)^//go:build.*$", "", source))
        needed = [*required_version(release), f"k8s.io/kubernetes v{release.version}"]
        write_module(folder, needed, staging(release))
        definitions: dict[str, Any] = json.loads(gzip.decompress(go("run", ".", folder=folder)))
        return definitions


def required_version(release: Release) -> list[str]:
    """The version of kube-openapi that the release was made with."""
    match = re.search(r"(k8s\.io/kube-openapi) (v\S+)", (release.source / "go.mod").read_text())
    assert match, "every release has been made with one"
    return [f"{match[1]} {match[2]}"]


def staging(release: Release) -> list[str]:
    """Modules that k8s.io/kubernetes has in itself, which are published with it."""
    names = re.findall(r"k8s\.io/([a-z-]+) =>", (release.source / "go.mod").read_text())
    return [f"replace k8s.io/{name} => {release.module(name)}" for name in sorted(set(names))]


def write_module(folder: Path, needed: list[str], replaced: list[str] | None = None) -> None:
    lines = ["module own", "", "go 1.24.0", "", *(f"require {one}" for one in needed), *(replaced or ())]
    (folder / "go.mod").write_text("\n".join(lines) + "\n")
