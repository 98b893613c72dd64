"""Invariants of every row in the table of strategies."""

import pytest

from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.kinds.strategy import MAIN
from tests.support.server.rows import catalog

RESOURCES = {row.group_resource: row for row in catalog().values()}

EACH_ITEM = [
    pytest.param(subject, strategy, id=str(subject)) for subject, strategy in NEWEST.strategies.items()
]


@pytest.mark.parametrize(("subject", "strategy"), EACH_ITEM)
def test_strategy_has_existing_resource_and_subresources(subject, strategy):
    has = {MAIN, "status", *(subresource.name for subresource in RESOURCES[subject].subresources)}
    assert {*strategy.resets, *strategy.only, *strategy.prepare_update} <= has


@pytest.mark.parametrize(("subject", "strategy"), EACH_ITEM)
def test_main_update_resets_status_and_status_update_resets_spec(subject, strategy):
    if subject.resource == "clustertrustbundles":
        assert not strategy.resets  # it has no status
        return
    assert ("status",) in strategy.resets[MAIN]
    assert ("spec",) in strategy.resets["status"] or subject.resource == "namespaces"


@pytest.mark.parametrize(
    ("subject", "kept"),
    [
        pytest.param(
            "leases.coordination.k8s.io", "create_on_update", id="update of an absent lease creates it"
        ),
        pytest.param("services", "returns_deleted", id="delete of a service returns the object"),
    ],
)
def test_strategy_facts_are_upstreams(subject, kept):
    (strategy,) = [strategy for name, strategy in NEWEST.strategies.items() if str(name) == subject]
    assert getattr(strategy, kept)
