"""Judgement 8: do two instances of the operator agree which one writes, and does the other one take over?"""

from collections import Counter
from collections.abc import Sequence

from mockube.apimachinery import meta
from mockube.apimachinery.wellknown import ANNOTATION_LEADER
from mockube.apiserver.control.recorder import RecordedCall

from .context import Context, NotApplicable, about
from .findings import Judgement, Level
from .inputs import Account, with_second_account
from .reference import lines_of
from .trial_cluster import TrialCluster

_SECOND = "second-instance"


def judge(context: Context, judgement: Judgement) -> None:
    setup = context.setup
    workload = setup.workload(setup.release)
    if workload is not None and workload.recreates:
        raise NotApplicable(
            f"{workload.kind} {workload.name} has one replica and never runs two pods at the same time"
        )
    context.require_reference()
    judgement.by_hand = [
        f"MOCKUBE_INSTANCE=1 {context.start_command}",
        *context.by_hand(f"mockube requests --name=by-hand --user={context.user}   # each write twice"),
    ]
    judgement.did.append(
        "Started two instances of the operator, the second one with a service account of its own that has the same rights,"
        " created the custom resource, and counted the writes of each since then, without Leases and Events."
    )
    with context.trial() as trial:
        second = _second_account(trial)
        trial.create_others()
        trial.start_and_settle()
        other = trial.start_and_settle(second)
        if trial.exits:
            other.stop()
            raise NotApplicable(
                f"two instances cannot run on this machine: one ended with the code {trial.exits[0].code}:"
                f" {trial.exits[0].log.splitlines()[-1] if trial.exits[0].log else 'no log'};"
                " let ports depend on the variable MOCKUBE_INSTANCE, which is 0 and 1"
            )
        begin = setup.clock.now()  # at its start, each instance may write what is its own
        trial.create_resource()
        context.wait_for_state(trial, setup.timeout / 3)
        is_quiet = trial.settle()
        of_second = [each for each in trial.all_writes() if each.user == second.user and each.at >= begin]
        counts = {"first": len(trial.writes(begin)), "second": len(of_second)}
        judgement.figures |= {f"writes of the {name}": str(count) for name, count in counts.items()}
        leases = _leases(trial, second)
        judgement.figures["Leases"] = ", ".join(leases) or "none"
        if all(counts.values()):
            _add_two_writers(judgement, of_second, leases, is_quiet=is_quiet)
            return
        if not leases and not _has_older_lock(trial) and _readers(trial, second) == 2:
            judgement.add(
                "no-leader",
                Level.WARNING,
                "Two instances",
                f"both read {trial.setup.sample.plural}, and nothing elects which one writes: there is no Lease. Here only one wrote, which was first",
            )
        _take_over(context, judgement, trial, 0 if counts["first"] else 1)


def _second_account(trial: TrialCluster) -> Account:
    """Create a service account with the rights of the operator's."""
    second = Account(namespace=trial.account.namespace, name=_SECOND)
    metadata = {"name": second.name, "namespace": second.namespace}
    trial.cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    bindings = [
        *trial.cluster.list("ClusterRoleBinding"),
        *trial.cluster.list("RoleBinding", namespace=""),
    ]
    for tree in with_second_account(bindings, trial.account, second):
        patch = {"subjects": tree["subjects"]}
        trial.cluster.patch(
            tree["kind"], meta.name(tree), patch, type="merge", namespace=meta.namespace(tree) or "default"
        )
    return second


def _leases(trial: TrialCluster, second: Account) -> list[str]:
    users = (trial.user, second.user)
    calls = trial.cluster.calls(user="system:serviceaccount:*", resource="leases")
    return sorted({each.name for each in calls if each.user in users and each.name})


def _has_older_lock(trial: TrialCluster) -> bool:
    """Return whether a leader is elected by an annotation, as older operators do."""
    objects = [*trial.cluster.list("ConfigMap", namespace=""), *trial.cluster.list("Endpoints", namespace="")]
    return any(ANNOTATION_LEADER in meta.annotations(tree) for tree in objects)


def _readers(trial: TrialCluster, second: Account) -> int:
    """Return how many instances have read custom resources of the sample's kind."""
    calls = trial.cluster.calls(user="system:serviceaccount:*", resource=trial.setup.sample.plural)
    return len({trial.user, second.user} & {each.user for each in calls if each.verb in ("list", "watch")})


def _add_two_writers(
    judgement: Judgement, of_second: Sequence[RecordedCall], leases: Sequence[str], *, is_quiet: bool
) -> None:
    resources = Counter(each.resource for each in of_second)
    reason = "although there is a Lease" if leases else "and there is no Lease: no leader is elected"
    judgement.add(
        "two-writers" if is_quiet else "two-writers-fight",
        Level.WARNING if is_quiet else Level.ERROR,
        "Two instances",
        f"both {'wrote' if is_quiet else 'write without end'} {', '.join(sorted(resources))}, {reason}; two run at once during each rolling update of its Deployment",
        details=[
            f"the second one: {count} writes of {resource}" for resource, count in resources.most_common(5)
        ],
    )


def _take_over(context: Context, judgement: Judgement, trial: TrialCluster, leader: int) -> None:
    """Kill the instance that writes, and let the other one finish a change."""
    trial.instances[leader].kill()
    kind, name = trial.resource_target
    begin = context.setup.clock.monotonic()
    trial.cluster.delete(kind, name, namespace=trial.resource_namespace)
    if trial.wait_for(trial.is_gone, context.setup.timeout) is not None:
        trial.create_resource()
    judgement.did.append(
        "Killed the instance that wrote, deleted the custom resource and created it again, and waited for the undisturbed state."
    )
    if context.wait_for_state(trial) is None:
        judgement.add(
            "no-takeover",
            Level.ERROR,
            about(context.setup.sample.resource),
            f"was not finished by the other instance in {context.setup.timeout:g} s after the leader was killed",
            details=[*lines_of(context.expected.differences(trial))],
        )
        return
    judgement.figures["taken over in"] = f"{context.setup.clock.monotonic() - begin:.1f} s"
