"""What `why` says of situations: the cause, who wrote what it names, and only remedies that the server accepts."""

import asyncio

import pytest

from tests.support.server.apiserver import running
from tests.support.server.situations import SituationCluster
from tests.support.situations import SITUATIONS


async def _explain(situations):
    found = {}
    async with running() as client:
        cluster = SituationCluster(client)
        await cluster.begin()
        for situation in situations:
            try:
                async with cluster.explained(situation) as status:
                    found[situation.name] = status
            except AssertionError as error:
                found[situation.name] = error
    return found


@pytest.fixture(scope="module")
def explained(request):
    """Return what is said of each situation that is tested, of one server."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    selected = [call.params["situation"] for call in calls if call is not None and "situation" in call.params]
    return asyncio.run(_explain(selected))


EACH = 5
"""One of so many situations is tested by `make test`, all of them by `make test-all`."""


@pytest.mark.parametrize(
    "situation",
    [
        pytest.param(situation, id=situation.name, marks=[pytest.mark.release] if position % EACH else [])
        for position, situation in enumerate(SITUATIONS)
    ],
)
def test_situation_is_explained(situation, explained):
    status = explained[situation.name]
    assert not isinstance(status, AssertionError), status
    assert situation.cause in status["cause"]
    origins = status.get("origins", ())
    if situation.origin:
        assert situation.origin == _text(origins[0]), [*map(_text, origins)]
    if situation.author:
        assert origins[0]["writes"][0]["user"] == situation.author, origins[0]
    commands = [each["command"] for each in status.get("remedies", ()) if "command" in each]
    for expected in situation.commands:
        assert any(each.startswith(expected) for each in commands), (expected, commands)
    for part in situation.absent:
        assert not any(part in each for each in commands), (part, commands)


def _text(origin):
    named = origin["object"]
    return f"{named['kind'].lower()}/{named['name']} {origin.get('field', '')}".strip()
