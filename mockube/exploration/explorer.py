"""An exploration: the undisturbed runs, from which plans are made, the runs of all plans in parallel, and the findings."""

import asyncio
import dataclasses
import os
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import Random, SeededRandom
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kubeconfig
from mockube.client.kinds import CONFIG_MAPS
from mockube.client.resources import AnyResource, Key, row
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.cluster import Cluster, ForkedCluster
from mockube.command_client import open_client
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import first_cause, run_until, start_in
from mockube.component_base.temporary_folder import temporary_folder
from mockube.failure import Failure, UsageError
from mockube.history.versions import without_own_fields
from mockube.objects.errors import InvalidType, InvalidValue, KindNotServed, WaitFailed
from mockube.objects.requests import ObjectRequests
from mockube.objects.resource_names import ResourceNames
from mockube.operators.account import UNDER_TEST, account_with_all_rights, write_kubeconfig
from mockube.operators.end_state import (
    NOISE,
    Identity,
    end_state,
    identity_of,
    kind_of,
    label_of,
    learn_varying,
)
from mockube.operators.writes import LEASES

from . import plans
from .findings import OperatorFinding, what_happened
from .judgements import STAYS, OperatorProblem, UndisturbedRuns, end_differences, find_problems
from .plan_run import PlanRun, RunLimits, RunOutcome, RunSetting, StepFailed, do_operation
from .plans import (
    PLANS,
    WITHOUT_STEPS,
    Disturbance,
    Learned,
    Plan,
    count_writes,
    pair_plans,
    single_plans,
    smallest,
)
from .scenario import GONE, InvalidScenario, Scenario
from .starters import Starter
from .trace import Trace, following

REPETITIONS: Final = 3
FIRST_LIMITS: Final = RunLimits(settle=1.5, patience=0.0, max_seconds=60.0)
"""Those of the undisturbed runs, from which the others are learned."""
DELETION_SECONDS: Final = 10.0
"""How long an undisturbed deletion may take after the last write."""
MAX_OWNED: Final = 20
_ACCOUNT: Final = ("kube-system", UNDER_TEST)
_SERVICE_ACCOUNTS: Final = row("v1", "serviceaccounts", "ServiceAccount")
_BINDINGS: Final = row(
    "rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
_PODS: Final = "Pod"
_TOKEN_SECONDS: Final = 86_400
_SETTLE: Final = (0.15, 3.0)
_PATIENCE: Final = (2.0, 10.0)
_LONGEST: Final = (10.0, 60.0)
_EXPLAINED: Final = (
    *(ApiError, NoResponse, Failure, StepFailed),
    *(KindNotServed, WaitFailed, InvalidType, InvalidValue),
)
_CLUSTER_FLAGS: Final = ("--control-requests=20000", "--control-changes=20000")


class Options(Struct, frozen=True, kw_only=True):
    seconds: float | None = None
    """The budget of time for the plans."""
    plans: int = PLANS
    seed: int = 0
    jobs: int = 0
    """How many runs there are at a time; 0 for three on each core."""
    patience: float | None = None

    @property
    def parallel(self) -> int:
        return self.jobs or 3 * (os.cpu_count() or 1)


class PlanProgress(Struct, frozen=True, kw_only=True):
    done: int
    total: int
    findings: int


Report = Callable[[str], None]
ShowProgress = Callable[[PlanProgress], None]
ShowFinding = Callable[[OperatorFinding], None]
"""Called with each finding as soon as it is confirmed."""


class Exploration(Struct, kw_only=True):
    """What was explored, and what was found."""

    findings: list[OperatorFinding] = field(default_factory=list)
    runs: int = 0
    """The number of plans that were tried."""
    not_applied: int = 0
    """Of these, how many could not take place: a moment did not come, or an object was not there."""
    not_judged: Counter[str] = field(default_factory=Counter)
    """Why runs of plans say nothing, and how many."""
    not_seen_again: int = 0
    seconds: float = 0.0
    learning_seconds: float = 0.0
    writes: int = 0
    notes: list[str] = field(default_factory=list)
    """What is not the same each time without a disturbance."""
    covered: Counter[str] = field(default_factory=Counter)
    coverable: Counter[str] = field(default_factory=Counter)

    def coverage(self) -> str:
        parts = (f"{self.covered[name]} of {count} {name}" for name, count in self.coverable.items())
        return ", ".join(parts)


class ScenarioFails(Failure):
    """The scenario does not succeed undisturbed. The message has several lines: those that the operator printed, too."""


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
            root = await asyncio.to_thread(cluster.fork)  # it has one thread, so that its forks are safe
            async with open_client(dataclasses.replace(access, server=root.url), clock) as client:
                resources = await _listed_resources(client)
                setting = replace(setting, scenario=await with_known_subject(client, scenario))
            yield ForkRunner(setting, root, resources)
        finally:
            await asyncio.to_thread(cluster.stop)


async def _arrange(
    scenario: Scenario, starter: Starter, clock: Clock, access: kubeconfig.Access, folder: Path
) -> RunSetting:
    namespace, name = tuple(scenario.service_account.split("/")) if scenario.service_account else _ACCOUNT
    admin = folder / "admin.kubeconfig"
    write_kubeconfig(admin, access, access.token, "default")
    async with open_client(access, clock) as client:
        requests = ObjectRequests(client, access)
        for number, step in enumerate(scenario.arrange):
            try:
                await do_operation(requests, admin, step.operation)
                for each in step.until:
                    target = each.object.target, None, each.condition
                    if each.condition == GONE:
                        await requests.wait_gone(
                            each.object.target, None, scenario.timeout, each.object.namespace
                        )
                    else:
                        await requests.wait(target, scenario.timeout, each.object.namespace)
            except _EXPLAINED as error:
                raise InvalidScenario(f"arrange[{number}]: {error}") from error
        try:
            token = await _token(client, namespace, name, has_rights=not scenario.service_account)
        except _EXPLAINED as error:
            raise InvalidScenario(f"operator.serviceAccount: {error}") from error
    return RunSetting(
        scenario=scenario,
        starter=starter,
        clock=clock,
        access=access,
        token=token,
        user=f"system:serviceaccount:{namespace}:{name}",
        namespace=namespace if scenario.service_account else "default",
        folder=folder,
    )


async def _token(client: Client, namespace: str, name: str, *, has_rights: bool) -> str:
    """Return a token of the operator's account, which is created with all rights unless the scenario has one."""
    key = Key(namespace, name)
    if has_rights:
        trees = account_with_all_rights(namespace, name)
        for resource, tree in zip((_SERVICE_ACCOUNTS, _BINDINGS), trees, strict=True):
            await client.create(resource, tree)
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {},
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = await client.create(_SERVICE_ACCOUNTS, request, key=key, subresource="token")
    return str(answer["status"]["token"])


async def with_known_subject(client: Client, scenario: Scenario) -> Scenario:
    """Return a scenario whose subject has its kind with the group; a short name of a kind that `act` defines stays."""
    if scenario.subject is None:
        return scenario
    kind, _, name = scenario.subject.target.partition("/")
    try:
        found = await ResourceNames(client).find(kind)
    except KindNotServed:
        return scenario
    target = f"{found.resource.group_kind}/{name}"
    return replace(scenario, subject=replace(scenario.subject, target=target))


async def _listed_resources(client: Client) -> Sequence[AnyResource]:
    """Return the resources whose objects a run begins with."""
    return [
        found.resource
        for found in await ResourceNames(client).all()
        if "list" in found.verbs
        and kind_of({"apiVersion": found.resource.api_version, "kind": found.resource.kind}) not in NOISE
        and "mockube" not in found.resource.group
    ]


async def _objects_at(
    client: Client, resources: Sequence[AnyResource], revision: str
) -> Mapping[Identity, ReadOnlyTree]:
    """Return the objects as they were at a revision: controllers may write while they are read."""
    objects: dict[Identity, ReadOnlyTree] = {}
    for resource in resources:
        try:
            listed = await client.list(resource, resource_version=revision, resource_version_match="Exact")
        except ApiError:  # such as metrics
            continue
        for item in listed.items:
            tree = without_own_fields({"apiVersion": resource.api_version, "kind": resource.kind, **item})
            objects[identity_of(tree)] = tree
    return objects


class ForkRunner:
    """Runs plans, each in a fork."""

    def __init__(self, setting: RunSetting, root: ForkedCluster, resources: Sequence[AnyResource]) -> None:
        self.setting = setting
        self._root, self._resources = root, resources
        self._number = 0

    async def run(self, plan: Plan, limits: RunLimits, is_as_expected: Callable[[Trace], bool]) -> RunOutcome:
        """Run a plan. An outcome with a problem says nothing about the operator: a machine without free processes is one, too."""
        clock, user = self.setting.clock, self.setting.user
        try:
            async with self._fork() as setting, open_client(setting.access, clock) as client:
                revision = (await client.list(CONFIG_MAPS, "default")).resource_version
                arranged = await _objects_at(client, self._resources, revision)
                async with following(client, clock, arranged, int(revision), user) as trace:
                    plan_run = PlanRun(setting, limits, plan, client, trace, self._new_folder())
                    return await plan_run.run(is_as_expected)
        except _EXPLAINED as error:
            problem = str(error)
        except OSError as error:
            problem = f"an error of the system: {error.strerror or error}"
        return RunOutcome(plan=plan, trace=Trace(clock=clock, operator=user, objects={}), problem=problem)

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


class Explorer:
    def __init__(
        self,
        runner: ForkRunner,
        options: Options,
        show_progress: ShowProgress = lambda _: None,
        show_finding: ShowFinding = lambda _: None,
    ) -> None:
        self._runner, self._options = runner, options
        self._show_progress, self._show_finding = show_progress, show_finding
        self._clock = runner.setting.clock
        self._scenario = runner.setting.scenario
        self._random: Random = SeededRandom(options.seed)
        self._places = asyncio.Semaphore(options.parallel)
        self._references: dict[str, UndisturbedRuns] = {}
        self._limits = FIRST_LIMITS
        self._seen: set[tuple[str, ...]] = set()
        self._without = self._scenario.without
        self.result = Exploration()

    # --- the undisturbed runs

    async def learn(self) -> Learned:
        """Run the scenario undisturbed, twice, and return what plans are made of; raise Failure if that does not work."""
        began = self._clock.monotonic()
        endings = ["", *self._possible_endings()]
        runs = [self._undisturbed(Plan(ending=ending)) for ending in endings for _ in range(2)]
        *outcomes, alone = await _all_of([*runs, self._undisturbed(WITHOUT_STEPS)])
        pairs = dict(zip(endings, zip(outcomes[::2], outcomes[1::2], strict=True), strict=True))
        self._limits = self._learn_limits(each for each in outcomes if each.is_quiet)
        for ending, both in pairs.items():
            self._references[ending] = self._reference(*both, alone)
            if not all(each.is_quiet for each in both):  # there is no end to compare with
                self._without |= {name for name, each in plans.ENDINGS.items() if each == ending}
        self.result.learning_seconds = self._clock.monotonic() - began
        return self._learned(*pairs[""])

    def _possible_endings(self) -> Iterator[str]:
        subject = self._scenario.subject
        if subject is None:
            return
        if plans.DELETE_SUBJECT not in self._scenario.without:
            yield plans.DELETE
        if subject.namespace != "default" and plans.TERMINATE_NAMESPACE not in self._scenario.without:
            yield plans.TERMINATE

    async def _undisturbed(self, plan: Plan) -> RunOutcome:
        limits = replace(FIRST_LIMITS, patience=DELETION_SECONDS) if plan.ending else FIRST_LIMITS
        outcome = await self._run_in_place(
            plan, limits, lambda trace: not plan.ending or self._subject_in(trace) is None
        )
        command = self._runner.setting.starter.text
        log = outcome.log.strip()[-2000:]
        if outcome.problem:
            raise Failure(f"{command} does not run undisturbed: {outcome.problem}")
        if outcome.failed_steps or (outcome.failed_expectations and not plan.ending):
            text = "; ".join([*outcome.failed_steps, *outcome.failed_expectations])
            printed = f"the operator printed:\n{log}" if log else ""
            lines = (f"the scenario does not succeed undisturbed: {text}", outcome.detail, printed)
            raise ScenarioFails("\n".join(filter(None, lines)))
        if not outcome.is_quiet and not plan.ending and plan.has_steps:
            raise Failure(
                f"{command} never becomes quiet undisturbed: it had still written after {FIRST_LIMITS.max_seconds:g} s"
            )
        return outcome

    def _reference(self, first: RunOutcome, second: RunOutcome, alone: RunOutcome) -> UndisturbedRuns:
        touched = first.trace.touched | second.trace.touched
        ends = [
            [each.trace.objects[identity] for identity in touched if identity in each.trace.objects]
            for each in (first, second)
        ]
        counted = first.trace.counted | second.trace.counted
        varying, user = learn_varying(ends[0], ends[1], counted), self._runner.setting.user
        reference = UndisturbedRuns(
            trace=first.trace,
            varying=varying,
            user=user,
            own=frozenset(end_state(alone.trace.objects_made_by(user), varying).labels.values()),
            writes=sum(each.is_write for each in first.trace.requests),
        )
        found = [
            [*find_problems(each, reference, self._scenario.invariants), *self._subject_stays(each)]
            for each in (first, second)
        ]
        self._report_undisturbed(found, first)
        problems = chain.from_iterable(found)
        return replace(reference, problems=frozenset(each.key for each in problems if each.type != STAYS))

    def _subject_in(self, trace: Trace) -> Identity | None:
        subject = self._scenario.subject
        return None if subject is None else subject.find(trace.objects)

    def _subject_stays(self, outcome: RunOutcome) -> Iterator[OperatorProblem]:
        """Yield the resource if it still exists after its deletion, as when its finalizer is never removed."""
        identity = self._subject_in(outcome.trace)
        if not outcome.plan.ending or not outcome.is_quiet or identity is None:
            return
        kind, namespace, name = identity
        finalizers = ", ".join(meta.finalizers(outcome.trace.objects[identity]))
        reason = f": it has the finalizers {finalizers}" if finalizers else ""
        text = f"{label_of((kind, namespace, name))} still exists after its deletion{reason}"
        yield OperatorProblem(type="deletion", text=text, key=("still exists", kind))

    def _report_undisturbed(self, found: Sequence[Sequence[OperatorProblem]], outcome: RunOutcome) -> None:
        """Report what is wrong with an undisturbed run, but not what plans show: other ends, and what stays after a deletion."""
        unique = {
            problem.key: problem
            for problem in chain.from_iterable(found)
            if problem.type not in ("end", STAYS) and problem.key not in self._seen
        }
        if unique:
            self._seen |= {*unique}
            finding = OperatorFinding(
                plan=outcome.plan,
                problems=[*unique.values()],
                history=what_happened(outcome.trace),
                confirmed=sum(any(problem.key in unique for problem in each) for each in found),
                repetitions=len(found),
            )
            self._add(finding)

    def _learn_limits(self, outcomes: Iterable[RunOutcome]) -> RunLimits:
        traces = [outcome.trace for outcome in outcomes]
        gap = max((gap for trace in traces for gap in trace.gaps[1:]), default=0.0)
        settle = _within(3 * gap + 0.1, _SETTLE)
        max_seconds = max(trace.last_activity - trace.began for trace in traces)
        patience = self._options.patience
        return RunLimits(
            settle=settle,
            patience=_within(8 * settle, _PATIENCE) if patience is None else patience,
            max_seconds=max(_within(10 * max_seconds + 5 * settle, _LONGEST), 2 * max_seconds),
        )

    def _learned(self, first: RunOutcome, second: RunOutcome) -> Learned:
        counts = [
            Counter(
                (each.verb, each.resource, each.namespace)
                for each in outcome.trace.requests
                if each.is_write and not each.is_error
            )
            for outcome in (first, second)
        ]
        reference = self._references[""]
        writes = [
            (each.verb, each.resource, each.namespace)
            for each in first.trace.requests
            if each.is_write and not each.is_error
        ]
        always = [write for write in count_writes(writes) if write.number < counts[1][write.group]]
        self.result.writes = len(always)
        self.result.notes += [f"{line} is not the same each time" for line in reference.varying.lines()]
        for group in sorted(
            group for group in {*counts[0], *counts[1]} if counts[0][group] != counts[1][group]
        ):
            verb, resource, namespace = group
            place = f" in {namespace}" if namespace else ""
            self.result.notes.append(
                f"{verb} of {resource}{place} is sent {counts[0][group]} times, or {counts[1][group]} times"
            )
        subject = self._scenario.subject
        identity = subject.find({*first.trace.touched, *first.trace.objects}) if subject is not None else None
        if subject is not None and identity is None:
            self.result.notes.append(
                f"there is no {subject} in an undisturbed run, so that it is not disturbed"
            )
        kind, namespace, name = identity or ("", "", "")
        return Learned(
            writes=always,
            watched=sorted(
                {
                    each.resource
                    for each in first.trace.requests
                    if each.verb == "watch" and each.resource != LEASES
                }
            ),
            owned=self._owned(first),
            subject=f"{kind}/{name}" if kind else "",
            subject_namespace=namespace,
            steps=len(self._scenario.act),
            has_lease=any(
                each.resource == LEASES and each.verb in ("update", "patch") for each in first.trace.requests
            ),
            has_nodes=_PODS in {kind for kind, _, _ in first.trace.touched},
            lists_from_cache=any(
                each.verb == "list" and "resourceVersion=0" in each.uri for each in first.trace.requests
            ),
            without=self._without,
        )

    def _owned(self, outcome: RunOutcome) -> Sequence[tuple[str, str]]:
        """Return the objects that the operator has made and that still exist, with a star for what is random."""
        trace, user = outcome.trace, self._runner.setting.user
        objects = trace.objects_made_by(user)
        labels = end_state(objects, self._references[""].varying).labels.values()
        return sorted({(f"{kind}/{label}", namespace) for kind, namespace, label in labels})[:MAX_OWNED]

    # --- the plans

    async def explore(self) -> Exploration:
        """Try the plans within the budget, and return what was found."""
        learned = await self.learn()
        began = self._clock.monotonic()
        singles = single_plans(learned, self._random)
        for plan in singles:
            self.result.coverable[_area(plan.disturbances[0])] += 1
        pairs = pair_plans(singles, self._random.stream("pairs"))
        every = (
            chain(singles, pairs)
            if self._options.seconds is not None or len(singles) < self._options.plans
            else iter(singles)
        )
        await self._run_all(every, began)
        self.result.seconds = self._clock.monotonic() - began
        self._check_judged()
        return self.result

    def _check_judged(self) -> None:
        """Raise Failure if no plan could be judged: no finding would look as if nothing was wrong."""
        not_judged = self.result.not_judged
        if self.result.runs and self.result.runs == not_judged.total() and not self.result.findings:
            ((problem, _),) = not_judged.most_common(1)
            raise Failure(f"none of {self.result.runs} plans could be judged: {problem}")

    async def _run_all(self, every: Iterator[Plan], began: float) -> None:
        async def work() -> None:
            for plan in every:
                is_late = (
                    self._options.seconds is not None
                    and self._clock.monotonic() - began >= self._options.seconds
                )
                if is_late or self.result.runs >= self._options.plans:
                    return
                self.result.runs += 1
                await self._try(plan)
                self._show_progress(
                    PlanProgress(
                        done=self.result.runs, total=self._options.plans, findings=len(self.result.findings)
                    )
                )

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._options.parallel):
                    start_in(group, "plans", work())
        except ExceptionGroup as errors:  # such as that of a full disk, on which a finding cannot be written
            raise first_cause(errors) from errors

    async def _try(self, plan: Plan) -> None:
        outcome = await self._run(plan)
        if outcome.problem:
            self.result.not_judged[outcome.problem] += 1
        elif not outcome.is_applied:
            self.result.not_applied += 1
        elif len(plan.disturbances) == 1:
            self.result.covered[_area(plan.disturbances[0])] += 1
        if outcome.problem:
            return
        problems = self.problems(outcome)
        new = [problem for problem in problems if problem.key not in self._seen]
        if not new:
            self._count_again(frozenset(problem.key for problem in problems))
            return
        await self._report_each(plan, outcome, frozenset(problem.key for problem in new))

    async def _report_each(self, plan: Plan, outcome: RunOutcome, keys: frozenset[tuple[str, ...]]) -> None:
        """Report problems with their smallest plans, which differ if the disturbances of a plan cause different ones."""
        self._seen |= keys  # so that no other plan reports them meanwhile
        while keys and (reported := await self._add_finding(plan, outcome, keys)):
            keys -= reported
        self._seen -= keys  # a later plan may show them again

    def _count_again(self, keys: frozenset[tuple[str, ...]]) -> None:
        for index, finding in enumerate(self.result.findings):
            if finding.key & keys:
                self.result.findings[index] = replace(finding, others=finding.others + 1)
                return

    async def _add_finding(
        self, plan: Plan, outcome: RunOutcome, keys: frozenset[tuple[str, ...]]
    ) -> frozenset[tuple[str, ...]]:
        """Add a finding if problems are seen again, and return which."""

        async def shows(smaller: Plan) -> bool:
            return bool(keys & {problem.key for problem in self.problems(await self._run(smaller))})

        least = await smallest(plan, shows)
        confirmed = 0
        last_outcome = outcome
        for _ in range(REPETITIONS):
            again = await self._run(least, slow=2)
            if keys & {problem.key for problem in self.problems(again)}:
                confirmed += 1
                last_outcome = again
        if not confirmed:
            self.result.not_seen_again += 1
            return frozenset()
        problems = [problem for problem in self.problems(last_outcome) if problem.key in keys]
        finding = OperatorFinding(
            plan=least,
            problems=problems,
            history=what_happened(last_outcome.trace),
            confirmed=confirmed,
            repetitions=REPETITIONS,
        )
        self._add(finding)
        return finding.key

    def _add(self, finding: OperatorFinding) -> None:
        self.result.findings.append(finding)
        self._show_finding(finding)

    async def replay(self, plan: Plan) -> tuple[RunOutcome, OperatorFinding | None]:
        """Run one plan, and return what is wrong with it; None if nothing is."""
        if plan.ending not in ("", *self._possible_endings()):
            raise UsageError(f"the scenario has nothing that can be deleted in this way: {plan}")
        await self.learn()
        outcome = await self._run(plan, slow=2)
        if not plan.disturbances:  # what is wrong undisturbed is no difference from the undisturbed runs
            return outcome, next((each for each in self.result.findings if each.plan == plan), None)
        problems = self.problems(outcome)
        if not problems:
            return outcome, None
        finding = OperatorFinding(
            plan=plan, problems=problems, history=what_happened(outcome.trace), confirmed=1, repetitions=1
        )
        return outcome, finding

    async def _run(self, plan: Plan, slow: int = 1) -> RunOutcome:
        reference = self._references[plan.ending]
        limits = self._limits
        if slow > 1:
            limits = RunLimits(
                settle=limits.settle, patience=limits.patience * slow, max_seconds=limits.max_seconds * slow
            )
        return await self._run_in_place(plan, limits, lambda trace: not end_differences(trace, reference))

    async def _run_in_place(
        self, plan: Plan, limits: RunLimits, is_as_expected: Callable[[Trace], bool]
    ) -> RunOutcome:
        """Run a plan when fewer runs are in progress than may be."""
        async with self._places:
            return await self._runner.run(plan, limits, is_as_expected)

    def problems(self, outcome: RunOutcome) -> Sequence[OperatorProblem]:
        if outcome.problem:
            return ()
        return find_problems(outcome, self._references[outcome.plan.ending], self._scenario.invariants)


async def _all_of(runs: Sequence[Coroutine[Any, Any, RunOutcome]]) -> Sequence[RunOutcome]:
    """Return what all runs were; if one fails, end the others, and raise its error."""
    failures: list[Failure] = []
    has_failed = asyncio.Event()

    async def noted(run: Coroutine[Any, Any, RunOutcome]) -> Sequence[RunOutcome]:
        try:
            return [await run]
        except Failure as error:
            failures.append(error)
            has_failed.set()
            return []

    async def all_noted() -> Sequence[RunOutcome]:
        return [*chain.from_iterable(await asyncio.gather(*map(noted, runs)))]

    outcomes = await run_until(has_failed.wait(), all_noted())
    if failures or outcomes is None:
        raise failures[0]
    return outcomes


def _area(disturbance: Disturbance) -> str:
    if disturbance.action in (plans.HOLD, plans.DROP, plans.STALE_START):
        return "delays and losses of events"
    return "disturbances at writes" if disturbance.write is not None else "disturbances after steps"


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
