"""The programs that render objects: helm for charts, kubectl or kustomize for kustomizations."""

import os
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from mockube.apimachinery import wellknown
from mockube.apimachinery.schema.minors import RELEASES
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.failure import UsageError
from mockube.importing.cleaning import DEFINITION
from mockube.importing.documents import parse

from .capabilities import built_in_versions, defined_versions
from .unserved_versions import chart_copies

_SECONDS: Final = 120
_SET_FILE: Final = "--set-file"
_API_VERSIONS: Final = "--api-versions"
_FILE_FLAGS: Final = ("--values", _SET_FILE)
_MAX_ARCHIVE_BYTES: Final = 100 << 20
"""The size of the files of a chart; helm refuses a larger one."""
CHART_FILE: Final = "Chart.yaml"
_DEFINITION_KIND: Final = DEFINITION.kind.encode()


class ChartOptions(Struct, frozen=True, kw_only=True):
    """What `helm template` needs besides the chart."""

    release: str = "release-name"
    namespace: str = wellknown.NAMESPACE_DEFAULT
    flags: Sequence[str] = ()
    """Flags of helm, such as `--set=replicas=2`."""


class Rendered(Struct, frozen=True, kw_only=True):
    """What a program rendered, or its error."""

    text: bytes = b""
    error: str = ""


def render_chart(
    chart: Path, minors: Sequence[str], options: ChartOptions, definitions: Iterable[ReadOnlyTree] = ()
) -> Iterator[Rendered]:
    """Yield what a chart renders for each minor, because templates may depend on the version and the APIs of the cluster.

    The cluster serves the kinds of the definitions, and of those in the chart's `crds`, which helm creates before it renders.
    """
    helm = shutil.which("helm")
    if helm is None:
        raise UsageError(
            f"{chart} is a chart, and helm, which renders it, is not on PATH: install it"
            " (https://helm.sh/docs/intro/install), or pass the output of `helm template` as a file"
        )
    custom = [*defined_versions((*definitions, *_definitions_of(helm, chart)))]
    user_versions = [version for flag in options.flags for version in _versions_of_flag(flag)]
    with chart_copies(chart) as copies, ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:

        def render(minor: str) -> Rendered:
            served = (*built_in_versions(minor), *custom)
            return _run_helm(helm, copies.chart_for(minor, {*served, *user_versions}), minor, options, served)

        yield from threads.map(render, minors)


def _versions_of_flag(flag: str) -> Sequence[str]:
    """Return the versions that a flag of the user says the cluster has."""
    name, _, value = flag.partition("=")
    return value.split(",") if name == _API_VERSIONS else ()


def _definitions_of(helm: str, chart: Path) -> Iterator[ReadOnlyTree]:
    """Yield the definitions in the folders `crds` of a chart and of its dependencies."""
    output = _render([helm, "show", "crds", str(chart)])
    for parsed in parse(output.text, str(chart)) if _DEFINITION_KIND in output.text else ():
        if isinstance(parsed.tree, dict):
            yield parsed.tree


def check_archive(chart: Path) -> None:
    """Raise UsageError if a file is no packed chart: helm's message would be one about its objects."""
    size = 0
    try:
        with tarfile.open(chart, "r:gz") as archive:
            is_chart = False
            for member in archive:
                is_chart |= PurePosixPath(member.name).name == CHART_FILE
                size += member.size
                if size > _MAX_ARCHIVE_BYTES:
                    break
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UsageError(f"{chart} is not a packed chart, or is damaged: {error}") from error
    if not is_chart:
        raise UsageError(f"{chart} is not a packed chart: it has no {CHART_FILE}")


def check_values(options: ChartOptions) -> None:
    """Raise UsageError for a file of values that does not exist. helm also reads URLs, and - for standard input."""
    for flag in options.flags:
        name, _, value = flag.partition("=")
        for text in value.split(",") if name in _FILE_FLAGS else ():
            file = text.partition("=")[2] if name == _SET_FILE else text
            if file and file != "-" and "://" not in file and not Path(file).exists():
                raise UsageError(f'{name}: the path "{file}" does not exist')


def _run_helm(
    helm: str, chart: Path, minor: str, options: ChartOptions, api_versions: Sequence[str]
) -> Rendered:
    return _render(
        [
            *(helm, "template", options.release, str(chart)),
            *(f"--namespace={options.namespace}", f"--kube-version={RELEASES[minor]}", "--include-crds"),
            *(f"{_API_VERSIONS}={','.join(api_versions)}", *options.flags),
        ]
    )


def build_kustomization(folder: Path) -> Rendered:
    if shutil.which("kubectl") is not None:
        return _render(["kubectl", "kustomize", str(folder)])
    if shutil.which("kustomize") is not None:
        return _render(["kustomize", "build", str(folder)])
    raise UsageError(
        f"{folder} is a kustomization, and neither kubectl nor kustomize, which build it, is on PATH"
    )


def _render(command: Sequence[str]) -> Rendered:
    finished = _run(command)
    if finished.returncode == 0:
        return Rendered(text=finished.stdout)
    return Rendered(error=_error_of(finished))


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=_SECONDS)  # noqa: S603 - the user's tools
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"`{' '.join(command)}` did not end within {_SECONDS} s") from error


def _error_of(finished: subprocess.CompletedProcess[bytes]) -> str:
    """Return the error of a program without its advice."""
    lines = finished.stderr.decode(errors="replace").strip().splitlines()
    own_lines = [line.strip() for line in lines if line.strip() and not line.startswith("Use --debug")]
    return (
        " ".join(own_lines).removeprefix("Error: ").removeprefix("error: ") or "it failed without a message"
    )
