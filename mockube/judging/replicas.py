"""Judgement 8: do two instances of the operator agree which one writes, and does the other one take over?"""

from collections import Counter

from mockube.apimachinery import meta

from .bench import Bench
from .context import Context, NotApplicable, about
from .findings import Judgement, Level
from .inputs import Account, with_second_account
from .reference import lines_of

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
        " created the custom resource, and counted the writes of each, without Leases and Events."
    )
    with context.bench() as bench:
        second = _second_account(bench)
        bench.create_others()
        bench.start_and_settle()
        other = bench.start_and_settle(second)
        if bench.exits:
            other.stop()
            raise NotApplicable(
                f"two instances cannot run on this machine: one ended with the code {bench.exits[0].code}:"
                f" {bench.exits[0].log.splitlines()[-1] if bench.exits[0].log else 'no log'};"
                " let ports depend on the variable MOCKUBE_INSTANCE, which is 0 and 1"
            )
        bench.create_resource()
        context.wait_for_state(bench, setup.timeout / 3)
        bench.settle()
        counts = {
            "first": len(bench.writes()),
            "second": sum(1 for each in bench.all_writes() if each.user == second.user),
        }
        judgement.figures |= {f"writes of the {name}": str(count) for name, count in counts.items()}
        leases = _leases(bench, second)
        judgement.figures["Leases"] = ", ".join(leases) or "none"
        if all(counts.values()):
            _add_two_writers(judgement, bench, second, leases)
            return
        _take_over(context, judgement, bench, 0 if counts["first"] else 1)


def _second_account(bench: Bench) -> Account:
    """Create a service account with the rights of the operator's."""
    second = Account(namespace=bench.account.namespace, name=_SECOND)
    metadata = {"name": second.name, "namespace": second.namespace}
    bench.cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    bindings = [
        *bench.cluster.list("ClusterRoleBinding"),
        *bench.cluster.list("RoleBinding", namespace=""),
    ]
    for tree in with_second_account(bindings, bench.account, second):
        patch = {"subjects": tree["subjects"]}
        bench.cluster.patch(
            tree["kind"], meta.name(tree), patch, type="merge", namespace=meta.namespace(tree) or "default"
        )
    return second


def _leases(bench: Bench, second: Account) -> list[str]:
    users = (bench.user, second.user)
    calls = bench.cluster.calls(user="system:serviceaccount:*", resource="leases")
    return sorted({each.name for each in calls if each.user in users and each.name})


def _add_two_writers(judgement: Judgement, bench: Bench, second: Account, leases: list[str]) -> None:
    resources = Counter(each.resource for each in bench.all_writes() if each.user == second.user)
    reason = "although there is a Lease" if leases else "and there is no Lease: no leader is elected"
    judgement.add(
        "two-writers",
        Level.WARNING,
        "Two instances",
        f"both wrote {', '.join(sorted(resources))}, {reason}; two run at once during each rolling update of its Deployment",
        details=[
            f"the second one: {count} writes of {resource}" for resource, count in resources.most_common(5)
        ],
    )


def _take_over(context: Context, judgement: Judgement, bench: Bench, leader: int) -> None:
    """Kill the instance that writes, and let the other one finish a change."""
    bench.instances[leader].kill()
    kind, name = bench.resource_target
    begin = context.setup.clock.monotonic()
    bench.cluster.delete(kind, name, namespace=bench.resource_namespace)
    if bench.wait_for(bench.is_gone, context.setup.timeout) is not None:
        bench.create_resource()
    judgement.did.append(
        "Killed the instance that wrote, deleted the custom resource and created it again, and waited for the undisturbed state."
    )
    if context.wait_for_state(bench) is None:
        judgement.add(
            "no-takeover",
            Level.ERROR,
            about(context.setup.sample.resource),
            f"was not finished by the other instance in {context.setup.timeout:g} s after the leader was killed",
            details=[*lines_of(context.expected.differences(bench))],
        )
        return
    judgement.figures["taken over in"] = f"{context.setup.clock.monotonic() - begin:.1f} s"
