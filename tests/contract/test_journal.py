"""The journal notes the revision that the store returned, whatever the store."""

import asyncio

from mockube.apiserver.storage.journal import Author, Journal
from mockube.etcd.kv import Compare, Delete, Put, Target, Txn
from tests.support.stores.calls import get, head, put


def author(name):
    return Author(user=name, verb="update")


async def test_each_write_is_noted_under_the_revision_of_its_key(store):
    journal = Journal()
    await put(store, b"other")
    for name in ("a", "b"):
        await journal.commit(store, Txn(then=(Put(key=b"/k/" + name.encode(), value=b"1"),)), author(name))
        await put(store, b"other")  # by another server
    for name in ("a", "b"):
        kv = await get(store, b"/k/" + name.encode())
        assert journal.author(kv.mod_revision) == author(name)
    assert len(journal.entries()) == 2


async def test_concurrent_writes_have_an_entry_each(store):
    journal = Journal()
    names = [f"{number:03}" for number in range(50)]
    await asyncio.gather(
        *(
            journal.commit(store, Txn(then=(Put(key=name.encode(), value=b"1"),)), author(name))
            for name in names
        )
    )
    noted = [entry.revision for entry in journal.entries()]
    assert noted == sorted(set(noted))
    assert len(noted) == len(names)
    for name in names:
        assert journal.author((await get(store, name.encode())).mod_revision) == author(name)


async def test_transaction_that_changes_nothing_is_not_noted(store):
    journal = Journal()
    revision = await put(store, b"a")
    seen = Compare(key=b"a", target=Target.MOD, operand=revision - 1)
    for transaction in (
        Txn(compare=(seen,), then=(Put(key=b"a", value=b""),)),
        Txn(then=(Delete(key=b"none"),)),
    ):
        await journal.commit(store, transaction, author("a"))
    assert journal.entries() == []
    assert await head(store) == revision
