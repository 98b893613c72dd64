"""Every metric and label in the dashboard and the Prometheus rules is exposed by the two processes."""

import re
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mockube.launch import PACKS
from tests.support.processes import promql
from tests.support.processes.acknowledged_writes import until
from tests.support.processes.process import ApiServerProcess, ManagerProcess, tls

TARGET_LABELS = {"job", "instance"}
"""Labels that Prometheus adds to every scraped sample."""
COUNTED_LATER = {"apiserver_storage_consistency_checks_total"}
"""First counted after five minutes; a family without samples is not exposed."""
PARTS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",)}


def read(url, **options):
    with urllib.request.urlopen(f"{url}/metrics", **options) as answer:
        return list(text_string_to_metric_families(answer.read().decode()))


def has_family(families, name):
    return any(family.name == name for family in families)


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """Metric families of both processes, read after the manager has started its controllers."""
    with (
        ApiServerProcess(tmp_path_factory.mktemp("metrics"), f"--packs={PACKS}") as server,
        ManagerProcess(
            server.kubeconfig, "--metrics-port=0", "--simulate-nodes=1", f"--packs={PACKS}"
        ) as manager,
    ):
        url = re.search(r"Health and metrics: (http://\S+)", "".join(manager.log))[1]
        context = tls(server.kubeconfig)
        until(
            lambda: has_family(read(server.url, context=context), "apiserver_longrunning_requests"), "a watch"
        )
        until(
            lambda: has_family(read(url), "controller_runtime_reconcile"),
            "the metrics of reconciliations",
        )
        return read(server.url, context=context) + read(url)


@pytest.fixture(scope="module")
def names(families):
    return {family.name + part for family in families for part in PARTS.get(family.type, ("",))}


@pytest.fixture(scope="module")
def label_names(families):
    """The label names of each metric that has samples."""
    found = {}
    for family in families:
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.mark.parametrize("expression", promql.expressions())
def test_every_metric_in_expressions_exists(names, expression):
    used = promql.metrics(expression) - promql.PROMETHEUS_OWN - promql.recorded_metrics()
    assert used <= names | COUNTED_LATER


@pytest.mark.parametrize("expression", promql.expressions())
def test_every_label_in_expressions_exists(label_names, expression):
    for metric in promql.metrics(expression) & label_names.keys():
        assert promql.labels(expression) <= label_names[metric] | TARGET_LABELS


@pytest.mark.parametrize("panel", promql.panels(), ids=lambda panel: panel["title"])
def test_panels_use_units_that_page_can_draw(panel):
    page = (promql.FOLDER / "consoles" / "mockube.html").read_text()
    units = set(re.findall(r"^  (\w+): (?:short|\(value\))", page, re.MULTILINE))
    assert panel["unit"] in units
    assert panel.keys() == {"title", "unit", "label", "query"}


def test_promql_parser_finds_metrics_and_labels():
    expression = 'histogram_quantile(0.99, sum by (verb, le) (rate(a_bucket{code=~"5.."}[1m]))) / b:c > 1'
    assert promql.metrics(expression) == {"a_bucket", "b:c"}
    assert promql.labels(expression) == {"verb", "le", "code"}
