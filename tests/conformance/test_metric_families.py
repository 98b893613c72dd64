"""Our metric families have the type, the stability, the labels and the buckets of those of real components."""

import fnmatch
from pathlib import Path

import orjson
import pytest
import yaml

from mockube.apimachinery.gotext import format_g
from mockube.apiserver.metrics import families as of_server
from mockube.client.metrics import families as of_client
from mockube.component_base import process_metrics as of_process
from mockube.component_base.metrics import Family
from mockube.controller_manager import metric_families as of_manager
from mockube.scheduler import metric_families as of_scheduler
from tests.support.recorded.metric_families import RECORDED, read_families

COMPONENTS = orjson.loads(RECORDED.read_bytes())
TABLES = {
    "kube-apiserver": (of_server, of_process),
    "kube-controller-manager": (of_client, of_manager, of_process),
    "kube-scheduler": (of_client, of_scheduler, of_process),
}
MISSING = yaml.safe_load((Path(__file__).parent / "metric_families_missing.yaml").read_text())


def families(value):
    """Yield the families in a constant of a table."""
    if isinstance(value, Family):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from families(each)
    elif isinstance(value, tuple):
        for each in value:
            if isinstance(each, Family | tuple):
                yield from families(each)


def table(component):
    found = [
        family
        for module in TABLES[component]
        for value in vars(module).values()
        for family in families(value)
    ]
    return {family.name: family for family in found}


def described(family, recorded):
    """Describe a family as a recording does, with what is in this one."""
    stability = family.help[1:].partition("]")[0] if family.help.startswith("[") else None
    parts = {
        "type": family.type,
        "labels": sorted(family.labels),
        "stability": stability,
        "buckets": " ".join([*map(format_g, family.buckets), "+Inf"]) if family.buckets else None,
    }
    return {part: value for part, value in parts.items() if part in recorded or value}


@pytest.mark.parametrize("component", COMPONENTS)
def test_families_are_described_as_those_of_real_component(component):
    ours = table(component)
    same = {name: recorded for name, recorded in COMPONENTS[component].items() if name in ours}
    found = {name: described(ours[name], recorded) for name, recorded in same.items()}
    assert found == same
    assert len(found) > 20


@pytest.mark.parametrize("component", COMPONENTS)
def test_every_recorded_family_is_served_or_listed_with_reason(component):
    patterns = [
        pattern
        for entry in MISSING
        if component in entry.get("components", [component])
        for pattern in entry["families"]
    ]
    missing = COMPONENTS[component].keys() - table(component).keys()
    assert {name for name in missing if not any(fnmatch.fnmatch(name, each) for each in patterns)} == set()


def test_every_listed_pattern_names_a_recorded_family():
    for entry in MISSING:
        components = entry.get("components", [*COMPONENTS])
        names = {name for each in components for name in COMPONENTS[each].keys() - table(each).keys()}
        assert [pattern for pattern in entry["families"] if not fnmatch.filter(names, pattern)] == []


def test_families_are_read_from_an_exposition():
    text = """
# HELP a_total [STABLE] How often.
# TYPE a_total counter
a_total{verb="GET",code="200"} 1
# HELP b How long.
# TYPE b histogram
b_bucket{name="x",le="0.5"} 1
b_bucket{name="x",le="+Inf"} 2
b_sum{name="x"} 1
b_count{name="x"} 2
"""
    assert read_families(text) == {
        "a_total": {"type": "counter", "labels": ["code", "verb"], "stability": "STABLE"},
        "b": {"type": "histogram", "labels": ["name"], "buckets": "0.5 +Inf"},
    }
