"""kubectl on the kinds of the pack."""

import orjson
import pytest

from mockube.cli.main import main
from tests.packs.kruise.support import kruise
from tests.support.processes.process import ApiServerProcess

pytestmark = pytest.mark.timeout(240)

UNITED = orjson.dumps(kruise.united_deployment(kruise.subset("a"), kruise.subset("b"))).decode()
CLONES = orjson.dumps(kruise.clone_set(replicas=2)).decode()
SETS = orjson.dumps(kruise.stateful_set()).decode()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ApiServerProcess(tmp_path_factory.mktemp("kinds"), "--packs", "kruise") as running:
        yield running


@pytest.mark.parametrize(
    ("short", "manifest", "columns"),
    [
        pytest.param("ud", UNITED, "NAME DESIRED CURRENT UPDATED READY AGE", id="UnitedDeployment"),
        pytest.param(
            "clone", CLONES, "NAME DESIRED UPDATED UPDATED_READY UPDATED_AVAILABLE READY TOTAL AGE", id="CloneSet"
        ),
        pytest.param("asts", SETS, "NAME DESIRED CURRENT UPDATED READY AGE", id="StatefulSet"),
    ],
)  # fmt: skip
def test_kinds_of_pack_are_served(kubectl, short, manifest, columns):
    kubectl("apply", "-f", "-", stdin=manifest)
    assert kubectl("get", short).splitlines()[0].split() == columns.split()
    assert "Name:         foo" in kubectl("describe", short, "foo")
    kubectl("scale", f"{short}/foo", "--replicas=4")
    assert kubectl("get", short, "foo", "-o", "jsonpath={.spec.replicas}") == "4"
    kubectl("patch", short, "foo", "--type=merge", "-p", '{"spec":{"revisionHistoryLimit":3}}')
    kubectl("wait", f"{short}/foo", "--for=jsonpath={.spec.revisionHistoryLimit}=3", "--timeout=60s")
    assert "How many old revisions are kept" in kubectl("explain", f"{short}.spec.revisionHistoryLimit")
    kubectl("delete", short, "foo")


def test_definitions_of_pack_can_be_printed_and_applied(kubectl, capsys):
    kubectl("wait", "crd/clonesets.apps.kruise.io", "--for=condition=Established", "--timeout=60s")
    assert main(["crds", "kruise"]) == 0
    printed = capsys.readouterr().out
    kubectl("apply", "-f", "-", stdin=printed)
    assert kubectl("apply", "-f", "-", stdin=printed).count("unchanged") == 3
    generations = "jsonpath={.items[?(@.spec.group=='apps.kruise.io')].metadata.generation}"
    assert kubectl("get", "crds", "-o", generations) == "1 1 1"
    shown = kubectl("get", "crds", "-o", "name").splitlines()
    assert [name.partition("/")[2] for name in shown if "kruise" in name] == [
        "clonesets.apps.kruise.io",
        "statefulsets.apps.kruise.io",
        "uniteddeployments.apps.kruise.io",
    ]
