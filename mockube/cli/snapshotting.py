"""Where `mockube snapshot` reads and writes: to a running cluster, a folder or an etcd."""

import argparse
from collections.abc import Callable, Coroutine, Mapping
from typing import Final

from mockube.apimachinery.clock import RealClock
from mockube.apiserver.config.command_line import store_problem
from mockube.apiserver.config.settings import Store
from mockube.apiserver.snapshots import opened_snapshot
from mockube.cli.snapshot import STORE_FLAGS
from mockube.cli.target import server_of
from mockube.failure import UsageError
from mockube.snapshots.locations import Etcd, Folder, Running, SnapshotLocation, write


async def save(options: argparse.Namespace) -> None:
    saved = await write(options.file, _location(options).pieces())
    print(f"{options.file}: {saved.count} objects at revision {saved.opening.revision}")


async def restore(options: argparse.Namespace) -> None:
    location = _location(options)
    async with opened_snapshot(options.file) as archive:
        await location.put(archive, replace=options.replace)
        print(f"{options.file}: {archive.count} objects restored")


def _location(options: argparse.Namespace) -> SnapshotLocation:
    flags = {name: getattr(options, name) for name in STORE_FLAGS if getattr(options, name)}
    store, clock = Store(**flags), RealClock()
    if problem := store_problem(store):
        raise UsageError(problem)
    if flags and not (store.data_dir or store.etcd_servers):
        flag = next(iter(flags)).replace("_", "-")
        raise UsageError(f"--{flag} needs --data-dir or --etcd-servers")
    if store.etcd_servers:
        return Etcd(settings=store, clock=clock)
    if store.data_dir is not None:
        return Folder(path=store.data_dir, prefix=store.etcd_prefix, clock=clock)
    return Running(access=server_of(options), clock=clock)


WORK: Final[Mapping[str, Callable[[argparse.Namespace], Coroutine[None, None, None]]]] = {
    "save": save,
    "restore": restore,
}
