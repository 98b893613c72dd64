"""Warnings for accepted objects equal those recorded from Kubernetes."""

from pathlib import Path

import pytest
import yaml

from mockube.apimachinery.schema import builtin
from mockube.apiserver.kinds.kind_rules import Defaulter, KindRules
from mockube.apiserver.schema.decode import Decoder
from mockube.component_base.clock import SteppedClock
from tests.support.server.rows import catalog

SCHEMAS, DECODER = builtin.load(), Decoder()
RULES = KindRules(Defaulter(SCHEMAS, clock=SteppedClock()))
RESOURCES = {(row.api_version, row.kind): row for row in catalog().values()}


def cases():
    files = sorted(Path(__file__).parent.glob("*.yaml"))
    return [
        pytest.param(case, id=case["name"])
        for file in files
        for case in yaml.load(file.read_text(), yaml.CSafeLoader)
    ]


def decoded_with_defaults(sent):
    """Return an object decoded and with its defaults, as the warnings receive it."""
    version, kind = sent["apiVersion"], sent["kind"]
    tree = {"apiVersion": version, "kind": kind} | DECODER.decode(SCHEMAS.kind(version, kind), sent).tree
    RULES.default(version, kind, tree)
    return tree


def warnings_for(new, old=None, subresource=""):
    resource = RESOURCES[new["apiVersion"], new["kind"]]
    if old is None:
        return [*RULES.warn_create(resource, decoded_with_defaults(new))]
    return [*RULES.warn_update(resource, subresource, decoded_with_defaults(new), decoded_with_defaults(old))]


@pytest.mark.parametrize("case", cases())
def test_warnings_match_recording(case):
    assert warnings_for(case["new"], case.get("old"), case.get("subresource", "")) == case.get("warnings", [])


def daemon_set(seconds):
    template = {
        "spec": {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": seconds}
    }
    return {
        "kind": "DaemonSet",
        "apiVersion": "apps/v1",
        "metadata": {"name": "a"},
        "spec": {"template": template},
    }


@pytest.mark.parametrize(
    ("was", "count"),
    [pytest.param(1, 1, id="its template changes"), pytest.param(-1, 0, id="unchanged template")],
)
def test_daemon_set_template_warnings_need_template_change(was, count):
    assert len(warnings_for(daemon_set(-1), daemon_set(was))) == count
