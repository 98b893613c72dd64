"""What is read of a release's Go modules by programs in Go: `gotypes`, `internaltypes`, `openapi` and `podtemplate` of `tools`."""

import gzip
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from tools.needed import require_programs

TOOLS = Path(__file__).parents[1]

TYPES = ("api", "apiextensions-apiserver", "apimachinery", "client-go", "kube-aggregator")
"""The modules that `tools/gotypes` reads."""
GENERATED = "pkg/generated/openapi/zz_generated.openapi.go"

_PREVIEWS = ("alpha", "beta", "rc")


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
    def order(self) -> tuple[int, ...]:
        """The key that sorts releases by age; alphas, betas and candidates come before their release."""
        numbers, _, preview = self.version.partition("-")
        kind, _, number = preview.partition(".")
        age = (_PREVIEWS.index(kind), int(number)) if preview else (len(_PREVIEWS), 0)
        return (*map(int, numbers.split(".")), *age)

    @property
    def source(self) -> Path:
        """The folder of k8s.io/kubernetes."""
        return download(f"k8s.io/kubernetes@v{self.version}")


def module_folder(release: Release, name: str) -> Path:
    return download(release.module(name).replace(" ", "@"))


@cache
def download(module: str) -> Path:
    module_info = json.loads(go("mod", "download", "-json", module, folder=Path(tempfile.gettempdir())))
    return Path(module_info["Dir"])


def go(*arguments: str, folder: Path, text: bytes = b"") -> bytes:
    environment = os.environ | {"GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off"}
    require_programs("go")
    command = ["nice", "go", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, input=text
    )
    return done.stdout


def go_types(release: Release) -> dict[str, Any]:
    """The output of `tools/gotypes` for a release."""
    with _module_of("gotypes", [release.module(name) for name in TYPES]) as folder:
        types: dict[str, Any] = json.loads(go("run", ".", folder=folder))
        return types


def pod_template_types(release: Release) -> dict[str, Any]:
    """The output of `tools/podtemplate` for a release."""
    types: dict[str, Any] = json.loads(_run_podtemplate(release, "types"))
    return types


def template_hashes(release: Release, templates: bytes) -> bytes:
    """The hashes of pod templates, one a line, as the release computes them."""
    return _run_podtemplate(release, text=templates)


def _run_podtemplate(release: Release, *arguments: str, text: bytes = b"") -> bytes:
    needed = [release.module("api"), release.module("apimachinery"), required_version(release, "utils")]
    with _module_of("podtemplate", needed) as folder:
        return go("run", ".", *arguments, folder=folder, text=text)


def internal_types(release: Release) -> dict[str, Any]:
    """The output of `tools/internaltypes` for a release. The first run compiles most of Kubernetes."""
    with _module_of("internaltypes", [], release) as folder:
        types: dict[str, Any] = json.loads(gzip.decompress(go("run", ".", folder=folder)))
        return types


COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")


def build_components(release: Release, target: Path) -> None:
    """Build the components of a release into a folder: one program, which runs the component it is called by the name of."""
    target.mkdir(parents=True, exist_ok=True)
    program, *names = (target.resolve() / name for name in COMPONENTS)
    with _module_of("kubernetes", [release.module("component-base")], release) as folder:
        go("build", "-ldflags", _version_flags(release), "-o", str(program), ".", folder=folder)
    for name in names:
        name.unlink(missing_ok=True)
        name.hardlink_to(program)


def _version_flags(release: Release) -> str:
    """The flags of the linker that set the version that a program reports."""
    major, _, minor = release.minor.partition(".")
    values = {"gitVersion": f"v{release.version}", "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())


SUITE: Final = "k8s.io/kubernetes/test/e2e"
SUITE_PROGRAM: Final = "e2e.test"
AGNHOST: Final = "agnhost"
AGNHOST_SOURCE: Final = "k8s.io/kubernetes/test/images/agnhost"
SAMPLE_APISERVER: Final = "sample-apiserver"
AGNHOST_FILES: Final = ("localhost.crt", "localhost.key")
"""The certificate and the key that are in the image of the suite's pods."""


def build_suite(release: Release, target: Path) -> None:
    """Build the end-to-end suite of a release into a folder, with the programs of its pods."""
    target.mkdir(parents=True, exist_ok=True)
    flags = f"-s -w {_version_flags(release)}"
    with _module_of("suite", [], release) as folder:
        suite = str(target.resolve() / SUITE_PROGRAM)
        go("test", "-c", "-ldflags", flags, "-o", suite, SUITE, folder=folder)
        for name, source in ((AGNHOST, AGNHOST_SOURCE), (SAMPLE_APISERVER, f"k8s.io/{SAMPLE_APISERVER}")):
            go("build", "-ldflags", flags, "-o", str(target.resolve() / name), source, folder=folder)
    for name in AGNHOST_FILES:
        shutil.copyfile(release.source / "test/images/agnhost/porter" / name, target / name)


def additions(release: Release) -> dict[str, Any]:
    """The output of `tools/openapi` for a release.

    All but the file of definitions is left behind: most of what k8s.io/kubernetes needs is not needed for it.
    """
    with _module_of("openapi", [required_version(release, "kube-openapi")], release) as folder:
        (folder / "openapi").mkdir()
        own = (folder / "main.go").read_text()
        (folder / "main.go").write_text(own.replace("k8s.io/kubernetes/pkg/generated/openapi", "own/openapi"))
        source = (release.source / GENERATED).read_text()
        (folder / "openapi" / "definitions.go").write_text(re.sub(r"(?m)^//go:build.*$", "", source))
        definitions: dict[str, Any] = json.loads(gzip.decompress(go("run", ".", folder=folder)))
        return definitions


@contextmanager
def _module_of(name: str, needed: list[str], release: Release | None = None) -> Iterator[Path]:
    """Yield a folder with a program of `tools` and a go.mod with the needed modules, and with all of a release's Kubernetes."""
    if release is not None:
        needed = [*needed, f"k8s.io/kubernetes v{release.version}"]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for path in (TOOLS / name).glob("*.go"):
            shutil.copy(path, folder)
        write_module(folder, needed, staging(release) if release else [])
        yield folder


def required_version(release: Release, name: str) -> str:
    """The version of a module that the release was made with, as go.mod states it."""
    match = re.search(rf"(k8s\.io/{name}) (v\S+)", (release.source / "go.mod").read_text())
    assert match, "every release has been made with one"
    return f"{match[1]} {match[2]}"


def staging(release: Release) -> list[str]:
    """Modules that k8s.io/kubernetes has in itself, which are published with it."""
    names = re.findall(r"k8s\.io/([a-z-]+) =>", (release.source / "go.mod").read_text())
    return [f"replace k8s.io/{name} => {release.module(name)}" for name in sorted(set(names))]


def write_module(folder: Path, needed: list[str], replaced: list[str]) -> None:
    lines = ["module own", "", "go 1.24.0", "", *(f"require {one}" for one in needed), *replaced]
    (folder / "go.mod").write_text("\n".join(lines) + "\n")
