"""Fork: a copy of the cluster at a moment that goes on by itself. It is posted as reviews are.

The program that runs the server makes it, since the server knows nothing of the processes of a cluster: it gets a snapshot, and
starts another cluster with that. `ForkSocket` sends the request to it.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from itertools import count
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

import msgspec

from mockube.apimachinery import status
from mockube.apimachinery.status import BadRequest, Conflict, Details, InternalError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import Attributes
from mockube.apiserver.authz.rbac.rules import ALL
from mockube.apiserver.registry.moments import NOW, Moment, Moments
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext, write_options
from mockube.apiserver.user import User
from mockube.component_base.fork_orders import MAX_LINE, NAME_PATTERN, ForkAnswer, ForkOrder
from mockube.component_base.supervision import run_to_end

from .access import decide
from .kind import ControlKind
from .posted import answer_posted, exclude_both, read_posted
from .schemas import integer, object_of, text
from .snapshots import Snapshots
from .strategy import ControlStrategy

NO_PROGRAM: Final = "this server cannot be forked by a Fork: those of `mockube up` and `mockube run` can, on Linux; `Cluster.fork()` of Python forks a cluster in its process"
IS_COPY: Final = "this cluster is a copy of the process of another one: it can be forked as it is now, not from a moment or a Snapshot"
_NEEDS_ALL: Final = "a fork has the keys of this cluster, and the roles of a moment: whoever makes one must be allowed all verbs on all resources"

NOT_COPIED: Final[Sequence[str]] = (
    "Connections: watches, exec and port-forwards stay with this cluster",
    "Addresses on this machine: the fork has a port of its own, and publishes no Services and Ingresses",
)
"""What a fork does not have that is a copy of the process."""
NOT_FORKED: Final[Sequence[str]] = (
    "Processes and files of containers outside of volumes: containers begin anew, and their logs",
    "What controllers, scheduler and kubelets have in memory, such as back-offs",
    "Connections: watches, exec and port-forwards stay with this cluster",
    "The history, Requests, Faults, Marks and Snapshots: the fork begins with none",
    "The clock: that of the fork begins at the time of the machine",
)

FORK: Final = ControlKind(
    name="Fork",
    plural="forks",
    description="Fork starts another cluster with the objects of this one, of now or of a moment, on the same machine. It is created, as "
    "a review is, and not stored. The fork ends with `mockube down`, or with this cluster.",
    spec=object_of(
        "Which fork.",
        {
            "name": text(
                "The name of the new cluster, for `mockube down --name` and all other commands.",
                pattern=NAME_PATTERN,
            ),
            "at": text(
                "The moment: a revision, the name of a Mark, a time, or a span before now such as -5m. The default is now.",
                minLength=1,
                maxLength=253,
            ),
            "snapshot": text(
                "The name of a Snapshot to start from, instead of a moment.", minLength=1, maxLength=253
            ),
        },
        "name",
    ),
    is_spec_required=True,
    status=object_of(
        "The fork.",
        {
            "url": text("The URL of its server. The credentials of this cluster are valid there, too."),
            "kubeconfig": text("The administrator's kubeconfig: a file of the user who runs the cluster."),
            "revision": integer("The revision of this cluster whose objects it has."),
            "time": text("When that revision was made, if it is known."),
            "notForked": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What it does not have of this cluster.",
            },
        },
    ),
    columns=(),
    verbs=("create",),
    unlisted_verbs=(),
)


MakeFork: TypeAlias = Callable[[str, AsyncGenerator[bytes, None]], Awaitable[ForkAnswer]]
"""Makes a fork with a name from the pieces of a snapshot."""
CopyProcess: TypeAlias = Callable[[str], Awaitable[ForkAnswer]]
"""Makes a fork with a name by the operating system's fork of this process."""


class Forks(ControlStrategy):
    kind = FORK

    def __init__(
        self, cluster: Registry, moments: Moments, snapshots: Snapshots, make: MakeFork | None
    ) -> None:
        """`make` makes the fork; None if none can be made."""
        self._cluster, self._moments = cluster, moments
        self._snapshots, self._make = snapshots, make
        self._copy_process: CopyProcess | None = None

    def use_copy(self, copy_process: CopyProcess) -> None:
        """Let the program in whose process both programs of the cluster run make the forks of now."""
        self._copy_process = copy_process

    def verbs(self) -> OwnVerbs:
        return {(FORK.group_resource, ""): {"create": self.create}}

    async def create(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await read_posted(registry, context, lambda spec: exclude_both(spec, "at", "snapshot"))
        spec = tree["spec"]
        if not await self._may_do_everything(context.user):
            raise status.forbidden(FORK.group_resource, spec["name"], _NEEDS_ALL)
        copies = self._copy_process is not None and "snapshot" not in spec and spec.get("at", NOW) == NOW
        if self._make is None and not copies:
            raise BadRequest(NO_PROGRAM, Details())
        if write_options(context, "CreateOptions").dry_run:
            raise BadRequest("a fork has no dry run", Details())
        if copies:
            answer = _checked(await self._copy(spec["name"]))
            moment, left_out = await self._moments.find(str(answer.revision)), NOT_COPIED
        else:
            moment, pieces = await self._source(spec)
            async with aclosing(pieces):
                answer = _checked(await self._order(spec["name"], pieces))
            left_out = NOT_FORKED
        return answer_posted(tree, _status(moment, answer, left_out), spec["name"])

    async def _copy(self, name: str) -> ForkAnswer:
        assert self._copy_process is not None
        return await self._copy_process(name)

    async def _order(self, name: str, pieces: AsyncGenerator[bytes, None]) -> ForkAnswer:
        assert self._make is not None
        return await self._make(name, pieces)

    async def _may_do_everything(self, user: User) -> bool:
        """Return whether nothing that a fork gives to a user is more than it has: keys that sign tokens, and roles of the past."""
        attributes = Attributes(user=user, verb=ALL, group=ALL, version=ALL, resource=ALL)
        return bool(await decide(self._cluster, attributes))

    async def _source(self, spec: Tree) -> tuple[Moment, AsyncGenerator[bytes, None]]:
        if "snapshot" in spec:
            return self._snapshots.moment(spec["snapshot"]), _whole(self._snapshots.data(spec["snapshot"]))
        moment = await self._moments.find(spec.get("at", NOW))
        return moment, self._snapshots.pieces(moment)


def _checked(answer: ForkAnswer) -> ForkAnswer:
    if answer.problem:
        raise (Conflict if answer.is_conflict else BadRequest)(answer.problem, Details())
    return answer


def _status(moment: Moment, answer: ForkAnswer, left_out: Sequence[str]) -> Tree:
    return {
        "url": answer.url,
        "kubeconfig": answer.kubeconfig,
        "revision": moment.revision,
        **moment.time_field(),
        "notForked": [*left_out, *answer.not_forked],
    }


async def _whole(data: bytes) -> AsyncGenerator[bytes, None]:
    yield data


class ForkSocket:
    """Makes forks by a request to the program that runs the server, which listens on a socket of the operating system."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = count(1)
        self._pid = os.getpid()

    async def make(self, name: str, pieces: AsyncGenerator[bytes, None]) -> ForkAnswer:
        if self._is_copy:
            return ForkAnswer(problem=IS_COPY)
        file = self._path.with_name(f"fork-{os.getpid()}-{next(self._numbers)}.gz")
        try:
            await _write(file, pieces)
        except BaseException:
            self._remove(file)
            raise
        # The program may have begun to start the fork: it goes on if the client leaves.
        return await run_to_end("fork", self._order(name, file))

    async def _order(self, name: str, file: Path) -> ForkAnswer:
        try:
            if self._is_copy:  # the process has been copied while the file was written
                return ForkAnswer(problem=IS_COPY)
            return await self._send(ForkOrder(name=name, snapshot=str(file)))
        finally:
            self._remove(file)

    @property
    def _is_copy(self) -> bool:
        """Whether this process is a copy of the one whose program listens on the socket."""
        return self._pid != os.getpid()

    def _remove(self, file: Path) -> None:
        if not self._is_copy:  # the file is that of the other process
            file.unlink(missing_ok=True)  # the program may have moved it

    async def _send(self, order: ForkOrder) -> ForkAnswer:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=MAX_LINE)
            try:
                writer.write(msgspec.json.encode(order) + b"\n")
                line = await reader.readline()
            finally:
                writer.close()
            return msgspec.json.decode(line, type=ForkAnswer)
        except (OSError, ValueError) as error:
            raise InternalError(
                f"the program that runs this server did not start the fork: {error}"
            ) from error


def _create(file: Path) -> BinaryIO:
    file.touch(mode=0o600, exist_ok=False)
    return file.open("wb")


async def _write(file: Path, pieces: AsyncGenerator[bytes, None]) -> None:
    try:
        with _create(file) as written:
            async for piece in pieces:
                written.write(piece)
    except OSError as error:
        raise InternalError(
            f"the objects of the fork cannot be written to a file: {error.strerror}"
        ) from error
