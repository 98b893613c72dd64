"""What becomes of a migration when a write of an object fails."""

from types import SimpleNamespace

import pytest

from mockube.apimachinery.status import (
    Conflict,
    Forbidden,
    InternalError,
    NotFound,
    ServerTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.metrics.process import Metrics
from mockube.client.wire import NoResponse
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.storageversionmigrator.controller import Migrator


class FailingClient:
    """Fails to patch one object, and keeps the statuses that are written."""

    def __init__(self, error):
        self.error = error
        self.patched, self.statuses = [], []

    async def patch(self, _, key, __, **___):
        self.patched.append(key.name)
        if key.name == "b":
            raise self.error

    async def update(self, _, body, **__):
        self.statuses.append(body["status"])


def migrator_of(client):
    clock = SteppedClock()
    informer = SimpleNamespace(add_handler=lambda _: None, lister=None)
    context = SimpleNamespace(
        client=client, clock=clock, metrics=Metrics(clock), informers=SimpleNamespace(of=lambda _: informer)
    )
    return Migrator(context)


def of(status, kind):
    return next((each["message"] for each in status["conditions"] if each["type"] == kind), None)


MIGRATION = {"metadata": {"name": "m"}, "spec": {}}
OBJECTS = [{"metadata": {"name": name, "namespace": "default", "resourceVersion": "1"}} for name in "abc"]
ROW = SimpleNamespace(resource=CONFIG_MAPS)


@pytest.mark.parametrize("error", [Conflict("changed"), NotFound("gone")], ids=["changed", "gone"])
async def test_object_that_was_written_since_or_is_gone_is_left_out(error):
    client = FailingClient(error)
    await migrator_of(client)._rewrite(MIGRATION, ROW, OBJECTS, 5)
    assert client.patched == ["a", "b", "c"]
    assert of(client.statuses[-1], "Succeeded") == "Migration completed"


@pytest.mark.parametrize(
    "error",
    [
        NoResponse("lost"),
        InternalError("no"),
        ServerTimeout("no"),
        ServiceUnavailable("no"),
        Timeout("no"),
        TooManyRequests("no"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_error_that_passes_is_retried(error):
    client = FailingClient(error)
    with pytest.raises(type(error)):
        await migrator_of(client)._rewrite(MIGRATION, ROW, OBJECTS, 5)
    assert client.patched == ["a", "b"]
    assert str(error) in of(client.statuses[-1], "Running")
    assert of(client.statuses[-1], "Failed") is None


async def test_other_error_fails_the_migration():
    client = FailingClient(Forbidden("no"))
    await migrator_of(client)._rewrite(MIGRATION, ROW, OBJECTS, 5)
    assert client.patched == ["a", "b"]
    assert of(client.statuses[-1], "Failed") == (
        "2/5 not yet migrated. migration encountered unhandled error: no"
    )
