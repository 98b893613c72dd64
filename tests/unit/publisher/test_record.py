"""What the ConfigMap of published ports says, and when it is written."""

import pytest
from msgspec.structs import replace

from mockube.apimachinery.status import AlreadyExists
from mockube.client.kinds import CONFIG_MAPS
from mockube.publisher import limits
from mockube.publisher.bindings import RECORD
from mockube.publisher.record import Record
from tests.support.publishing import ADDRESS, PublisherParts


class Loop:
    """A loop of reconciliations that counts what is added."""

    def __init__(self):
        self.added = []

    def add(self, key):
        self.added.append(key)

    def add_coalesced(self, key, _):
        self.added.append(key)


@pytest.fixture
def parts():
    return PublisherParts()


@pytest.fixture
def record(parts):
    return Record(parts.context, Loop())


def stored(parts):
    found = parts.informers.of(CONFIG_MAPS).lister.get(*RECORD)
    return None if found is None else found["data"]


OWN = {"address": ADDRESS, "load-balancers": "127.10.0.0/16"}


async def test_record_is_created_then_changed_and_else_left_alone(parts, record):
    await record.write()
    assert stored(parts) == OWN
    assert record.note("web", "127.0.0.1:1")
    await record.write()
    await record.write()
    assert [verb for verb, *_ in parts.client.writes] == ["create", "patch"]
    assert stored(parts) == {**OWN, "web": "127.0.0.1:1"}
    record.forget("web")
    await record.write()
    assert stored(parts) == OWN


def test_note_and_forget_say_whether_something_is_new(record):
    assert record.note("web", "a")
    assert not record.note("web", "a")
    assert record.note("web", "b")
    assert record.note("web", "")
    assert not record.forget("web")
    assert not record.note("other", "")
    assert record._loop.added == [RECORD] * 3


async def test_record_has_a_limit_and_changes_what_is_in_it(parts, record, monkeypatch):
    monkeypatch.setattr(limits, "MAX_RECORDS", 3)
    for name in ("a", "b"):
        assert record.note(name, "1")
    record.note("a", "2")
    await record.write()
    assert stored(parts) == {**OWN, "a": "2"}


async def test_fork_of_a_cluster_deletes_the_record(parts, record):
    await record.write()
    record._pid = 0
    await record.write()
    await record.write()
    assert [verb for verb, *_ in parts.client.writes] == ["create", "delete"]


async def test_record_that_another_creates_meanwhile_is_tried_again(parts, record):
    async def create(*_):
        raise AlreadyExists("there")

    parts.client.create = create
    assert (await record.write()).total_seconds() == 1


async def test_record_is_written_once_it_is_read_and_when_it_changes(parts, record):
    await parts.sync(CONFIG_MAPS)
    await record.wait_synced()
    for name in (RECORD.name, "other"):
        parts.put(CONFIG_MAPS, {"metadata": {"name": name, "namespace": RECORD.namespace}})
    assert record._loop.added == [RECORD, RECORD]


async def test_nothing_is_written_of_a_publisher_that_is_disabled(parts):
    settings = replace(parts.context.settings, is_enabled=False)
    record = Record(replace(parts.context, settings=settings), Loop())
    await record.write()
    assert parts.client.writes == []
    record.note("web", "a")
    await record.write()
    assert stored(parts) == {"web": "a"}


async def test_other_config_maps_are_no_reason_to_write(parts, record):
    parts.put(CONFIG_MAPS, {"metadata": {"name": "other", "namespace": RECORD.namespace}})
    assert record._loop.added == []
    parts.put(CONFIG_MAPS, {"metadata": {"name": RECORD.name, "namespace": RECORD.namespace}})
    assert record._loop.added == [RECORD]
    await record.write()
    assert stored(parts) == OWN
