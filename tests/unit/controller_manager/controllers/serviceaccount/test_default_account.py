"""Each namespace has the ServiceAccount `default`."""

import pytest

from mockube.client.cache.store import Change
from mockube.client.kinds import NAMESPACES, SERVICE_ACCOUNTS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.serviceaccount.controller import SERVICE_ACCOUNT, reconcile
from tests.support.controllers.fake_caches import FakeCaches

SHOP = Key("", "shop")
NOW = SteppedClock().now()


def namespace(**metadata):
    return {"metadata": {"name": "shop", **metadata}}


def account(name, namespace="shop"):
    return {"metadata": {"name": name, "namespace": namespace}}


@pytest.mark.parametrize(
    ("namespaces", "accounts", "creates"),
    [
        ([namespace()], [], True),
        ([namespace()], [account("other"), account("default", "elsewhere")], True),
        ([namespace()], [account("default")], False),
        ([namespace(deletionTimestamp="2030-01-01T00:00:00Z")], [], False),
        ([], [], False),
    ],
    ids=["missing", "others exist", "exists", "namespace is being deleted", "no namespace"],
)
def test_missing_account_is_created(namespaces, accounts, creates):
    plan = reconcile(FakeCaches({NAMESPACES: namespaces, SERVICE_ACCOUNTS: accounts}), SHOP, NOW)
    bodies = [body["metadata"] for action in plan.actions for body in action.bodies]
    assert bodies == ([{"name": "default", "namespace": "shop"}] if creates else [])


@pytest.mark.parametrize(
    ("number", "change", "keys"),
    [
        (0, Change(None, namespace()), [SHOP]),
        (0, Change(namespace(), None), []),
        (1, Change(account("default"), None), [SHOP]),
        (1, Change(account("other"), None), []),
        (1, Change(account("default"), account("default")), []),
        (1, Change(None, account("default")), []),
    ],
)
def test_namespace_and_deleted_account_are_reconciled(number, change, keys):
    assert [*SERVICE_ACCOUNT.watches[number].keys(FakeCaches({}), change)] == keys
