"""Charts of a scenario, rendered as `mockube lint` and `mockube test-operator` do."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.temporary_folder import temporary_folder
from mockube.failure import UsageError
from mockube.lint.inputs import InputReader
from mockube.lint.renderers import CHART_FILE, ChartOptions, check_values

PACKED: Final = (".tgz", ".tar.gz")


class ChartRelease(Struct, frozen=True, kw_only=True):
    """A chart, and how it is installed."""

    chart: Path
    release: str
    namespace: str
    values: Sequence[Path | Mapping[str, Any]] = ()
    """Files, and maps in place of files; a later one counts more."""


def render_release(release: ChartRelease, minor: str) -> Sequence[Mapping[str, Any]]:
    """Return the objects of a chart in the order in which helm installs them, but for its tests; raise UsageError if there are none."""
    if not (release.chart / CHART_FILE).is_file() and not release.chart.name.endswith(PACKED):
        raise UsageError(f"{release.chart} is no chart: neither a folder with {CHART_FILE}, nor a packed one")
    with temporary_folder("mockube-explore-values-") as folder:
        files = [_values_file(each, folder / f"{index}.yaml") for index, each in enumerate(release.values)]
        options = ChartOptions(
            release=release.release,
            namespace=release.namespace,
            flags=[*(f"--values={file}" for file in files), "--skip-tests"],
        )
        check_values(options)
        objects = InputReader([minor], options).read([str(release.chart)])[minor]
    for each in objects:
        if each.problems:
            raise UsageError(f"{each.file}: {each.problems[0].message}")
    return [_in_namespace(each.tree, release.namespace) for each in objects]


def _in_namespace(tree: ReadOnlyTree, namespace: str) -> ReadOnlyTree:
    """Return an object in its own namespace, or that of the release, which is left out when one is applied that has none."""
    return tree if meta.namespace(tree) else meta.with_value(tree, ("metadata", "namespace"), namespace)


def _values_file(values: Path | Mapping[str, Any], path: Path) -> Path:
    if isinstance(values, Path):
        return values
    path.write_text(yaml.dump(values, Dumper=yaml.CSafeDumper, allow_unicode=True))
    return path
