"""Which running pods may create the objects that other pods of their namespace wait for."""

import pytest

from mockube.apimachinery.status import Forbidden
from mockube.client.cache.store import Store
from mockube.client.kinds import CONFIG_MAPS, SECRETS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.kubelet.possible_creators import PossibleCreators
from tests.support.controllers import pods as pod_objects
from tests.support.images import PREDICTIONS

OPERATOR = "system:serviceaccount:ns:operator"


class Server:
    """Allows the operator to create Secrets, and counts the reviews."""

    def __init__(self):
        self.users = []
        self.fails = False

    async def create(self, resource, review):
        assert resource.plural == "subjectaccessreviews"
        spec = review["spec"]
        self.users.append(spec["user"])
        if self.fails:
            raise Forbidden("no")
        attributes = spec["resourceAttributes"]
        allowed = (spec["user"], attributes["resource"], attributes["verb"]) == (
            OPERATOR,
            "secrets",
            "create",
        )
        return {"status": {"allowed": allowed}}


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def cache():
    return Store()


@pytest.fixture
def creators(server, cache, clock):
    return PossibleCreators(server, cache, clock, PREDICTIONS)


def add(cache, name, *command, account="operator", phase="Running", **fields):
    tree = pod_objects.pod(pod_objects.container("c", *command), serviceAccountName=account, **fields)
    metadata = {**tree["metadata"], "name": name, "resourceVersion": "1"}
    tree = {**tree, "metadata": metadata, "status": {"phase": phase}}
    cache.put(Key("ns", name), PodView.of(tree))


@pytest.mark.parametrize(
    ("fields", "creator"),
    [
        ({}, "o"),
        ({"account": "other"}, ""),
        ({"phase": "Pending"}, ""),
        ({"annotations": {"mockube.dev/run": "sleep 60"}}, ""),
    ],
)
async def test_creator_runs_unknown_program_and_has_the_right(creators, cache, fields, creator):
    add(cache, "o", **fields)
    assert await creators.find("ns", SECRETS) == creator
    assert await creators.find("ns", CONFIG_MAPS) == ""
    assert await creators.find("other", SECRETS) == ""


async def test_pod_with_simulated_program_creates_nothing(creators, cache, server):
    add(cache, "o", "sleep", "60")
    assert await creators.find("ns", SECRETS) == ""
    assert server.users == []


async def test_answer_holds_for_seconds(creators, cache, server, clock):
    for number in range(3):
        add(cache, f"o-{number}", account="other")
    assert await creators.find("ns", SECRETS) == ""
    add(cache, "o")
    assert await creators.find("ns", SECRETS) == ""
    assert server.users == ["system:serviceaccount:ns:other"]
    clock.advance(6)
    assert await creators.find("ns", SECRETS) == "o"


async def test_review_that_fails_allows_nothing(creators, cache, server):
    add(cache, "o")
    server.fails = True
    assert await creators.find("ns", SECRETS) == ""
