"""The cluster that is arranged once, and the runs of plans in its forks."""

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kubeconfig
from mockube.client.resources import AnyResource, Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.cluster import Cluster, ForkedCluster
from mockube.command_client import AGENT, open_client
from mockube.component_base.clock import Clock
from mockube.component_base.temporary_folder import temporary_folder
from mockube.control_objects import REQUESTS, object_of
from mockube.failure import Failure
from mockube.history.versions import without_own_fields
from mockube.objects.errors import InvalidType, InvalidValue, KindNotServed, WaitFailed
from mockube.objects.requests import ObjectRequests
from mockube.objects.resource_names import ResourceNames
from mockube.operators.account import write_kubeconfig
from mockube.operators.end_state import NOISE, Identity, identity_of, kind_of

from .operator_identity import identity_of_operator
from .operator_run import newest_revision
from .plan_run import PlanRun
from .plans import Plan
from .run_outcome import (
    GoesOn,
    IsAtEnd,
    IsEnough,
    RunLimits,
    RunOutcome,
    RunSetting,
    ends_now,
    is_never_enough,
)
from .run_recording import record_run
from .scenario import InvalidScenario, Scenario
from .secret_values import digested
from .starters import Starter
from .steps import StepFailed, do_operation, wait_for
from .trace import ArrangedObjects, Trace, following

SHARED_SECONDS: Final = 60.0
"""How long runs share the objects that were arranged: a server compacts the Changes since then only after minutes."""
_EXPLAINED: Final = (
    *(ApiError, NoResponse, Failure, StepFailed),
    *(KindNotServed, WaitFailed, InvalidType, InvalidValue),
)
_FAULT: Final = object_of("Fault", "never", {"match": {"user": "nobody"}, "refuse": {"status": 500}})
_CLUSTER_FLAGS: Final = (
    *("--control-requests=20000", "--control-changes=20000"),
    "--control-request-bodies=4194304",  # they show which patches a conflict can meet
)


@asynccontextmanager
async def fork_runner(scenario: Scenario, starter: Starter, clock: Clock) -> AsyncIterator["ForkRunner"]:
    """Arrange a cluster, and yield what runs plans in forks of it."""
    options = {**scenario.cluster, "flags": [*_CLUSTER_FLAGS, *scenario.cluster.get("flags", ())]}
    try:
        cluster = Cluster(**options)
    except (TypeError, ValueError) as error:
        raise InvalidScenario(f"cluster: {error}") from error
    with temporary_folder("mockube-explore-") as folder:
        try:
            await asyncio.to_thread(cluster.start)
            # Without the certificate: a token is enough, and a context with a certificate takes longer to make.
            access = dataclasses.replace(kubeconfig.read(cluster.kubeconfig), certificate=b"", key=b"")
            setting = await _arrange(scenario, starter, clock, access, folder)
            with _only_errors():
                root = await asyncio.to_thread(cluster.fork)  # it has one thread, so that its forks are safe
            async with open_client(dataclasses.replace(access, server=root.url), clock) as client:
                resources = await _listed_resources(setting.names)
                revision = await newest_revision(client)
                arranged = await _arranged_objects(client, resources, revision, clock)
                setting = replace(setting, scenario=await with_known_subject(setting.names, scenario))
            yield ForkRunner(setting, root, resources, arranged)
        finally:
            await asyncio.to_thread(cluster.stop)


@contextmanager
def _only_errors() -> Iterator[None]:
    """Let a fork that is made now log only errors of its own: what its controllers warn of looks as if the operator had printed it."""
    logger = logging.getLogger("mockube")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


async def _arrange(
    scenario: Scenario, starter: Starter, clock: Clock, access: kubeconfig.Access, folder: Path
) -> RunSetting:
    admin = folder / "admin.kubeconfig"
    write_kubeconfig(admin, access, access.token, "default")
    async with open_client(access, clock) as client:
        requests = ObjectRequests(client, access)
        for number, step in enumerate(scenario.arrange):
            try:
                await do_operation(requests, admin, step.operation)
                for each in step.until:
                    await wait_for(requests, each, scenario.timeout)
            except _EXPLAINED as error:
                raise InvalidScenario(f"arrange[{number}]: {error}") from error
        try:
            identity = await identity_of_operator(client, requests, scenario, folder, clock)
        except _EXPLAINED as error:
            field = "serviceAccount" if scenario.pod_of is None else "podOf"
            raise InvalidScenario(f"operator.{field}: {error}") from error
        names = ResourceNames(client)
        await names.discover()
    return RunSetting(
        scenario=scenario,
        starter=starter,
        clock=clock,
        access=access,
        identity=identity,
        folder=folder,
        names=names,
    )


async def with_known_subject(names: ResourceNames, scenario: Scenario) -> Scenario:
    """Return a scenario whose subject has its kind with the group; a short name of a kind that `act` defines stays."""
    if scenario.subject is None:
        return scenario
    kind, _, name = scenario.subject.target.partition("/")
    try:
        found = await names.find(kind)
    except KindNotServed:
        return scenario
    target = f"{found.resource.group_kind}/{name}"
    return replace(scenario, subject=replace(scenario.subject, target=target))


async def _listed_resources(names: ResourceNames) -> Sequence[AnyResource]:
    """Return the resources whose objects a run begins with."""
    return [
        found.resource
        for found in await names.all()
        if "list" in found.verbs
        and kind_of({"apiVersion": found.resource.api_version, "kind": found.resource.kind}) not in NOISE
        and "mockube" not in found.resource.group
    ]


async def _arranged_objects(
    client: Client, resources: Sequence[AnyResource], revision: int, clock: Clock
) -> ArrangedObjects:
    """Return the objects as they were at a revision: controllers may write while they are read."""
    requests = await client.list(REQUESTS, field_selector="code=0")
    objects: dict[Identity, ReadOnlyTree] = {}
    for resource in resources:
        try:
            listed = await client.list(
                resource, resource_version=str(revision), resource_version_match="Exact"
            )
        except ApiError:  # such as metrics
            continue
        for item in listed.items:
            tree = without_own_fields({"apiVersion": resource.api_version, "kind": resource.kind, **item})
            objects[identity_of(tree)] = digested(tree)
    return ArrangedObjects(
        objects=objects,
        revision=revision,
        request_version=requests.resource_version,
        seconds=clock.monotonic(),
    )


class ForkRunner:
    """Runs plans, each in a fork."""

    def __init__(
        self,
        setting: RunSetting,
        root: ForkedCluster,
        resources: Sequence[AnyResource],
        arranged: ArrangedObjects,
    ) -> None:
        self.setting = setting
        self._root, self._resources, self._arranged = root, resources, arranged
        self._number = 0

    async def run(
        self,
        plan: Plan,
        limits: RunLimits,
        is_at_end: IsAtEnd,
        goes_on: GoesOn = ends_now,
        is_enough: IsEnough = is_never_enough,
    ) -> RunOutcome:
        """Run a plan. An outcome with a problem says nothing about the operator: a machine without free processes is one, too."""
        clock, user = self.setting.clock, self.setting.identity.user
        try:
            async with self._fork() as setting, open_client(setting.access, clock) as client:
                revision = await newest_revision(client)
                arranged = await self._arranged_before(client, revision)
                own_setting = replace(setting, names=setting.names.with_client(client))
                async with following(client, clock, arranged, revision, user, own_setting.names) as trace:
                    plan_run = PlanRun(own_setting, limits, plan, client, trace, self._new_folder())
                    outcome = await plan_run.run(is_at_end, goes_on, is_enough)
                    if limits.is_recorded and not outcome.problem:
                        outcome.recording = await record_run(client, outcome, revision)
                    return outcome
        except _EXPLAINED as error:
            problem = str(error)
        except OSError as error:
            problem = f"an error of the system: {error.strerror or error}"
        return RunOutcome(plan=plan, trace=Trace(clock=clock, operator=user, objects={}), problem=problem)

    async def prepare(self, objects: Iterable[ReadOnlyTree]) -> None:
        """Let the cluster of the forks build what it needs to write such objects, and Faults: each fork would build that anew.

        They are applied as dry runs. Whether that succeeds does not matter, as without the operator's webhooks it may not.
        """
        access = dataclasses.replace(self.setting.access, server=self._root.url)
        async with open_client(access, self.setting.clock) as client:
            names = self.setting.names.with_client(client)
            for tree in [*objects, _FAULT]:
                with suppress(ApiError, KindNotServed):
                    found = await names.find_kind(tree["apiVersion"], tree["kind"])
                    body = {**tree, "metadata": {"name": meta.name(tree)}}
                    await client.patch(
                        found.resource, Key.of(tree), body, kind="apply", dry_run=True, field_manager=AGENT
                    )

    async def _arranged_before(self, client: Client, revision: int) -> ArrangedObjects:
        """Return the objects of a revision shortly before the fork, which has the Changes since then.

        Forks share them: to list them takes longer than a small operator's run.
        """
        clock, shared = self.setting.clock, self._arranged
        is_later = revision < shared.revision  # another run has listed them in a newer fork
        if is_later or clock.monotonic() - shared.seconds > SHARED_SECONDS:
            self._arranged = shared = await _arranged_objects(client, self._resources, revision, clock)
        return shared

    @asynccontextmanager
    async def _fork(self) -> AsyncIterator[RunSetting]:
        """Yield the setting of a run in a fork, which ends with the block."""
        fork = await asyncio.to_thread(self._root.fork)
        try:
            yield replace(self.setting, access=dataclasses.replace(self.setting.access, server=fork.url))
        finally:
            await asyncio.to_thread(fork.stop)

    def _new_folder(self) -> Path:
        self._number += 1
        folder = self.setting.folder / f"run-{self._number}"
        folder.mkdir()
        return folder
