"""Random inputs of pure functions of the controllers that no random walk calls, for a record of their results.

python -m tests.support.controllers.random_inputs # write the record
"""

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.randomness import SeededRandom
from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import PODS, SECRETS, SERVICE_ACCOUNTS
from mockube.client.podview import PodView
from mockube.controller_manager.controllers.certificates import cleaner, requests
from mockube.controller_manager.controllers.garbagecollector import decision, references
from mockube.controller_manager.controllers.horizontalpodautoscaler import behavior, replicas
from mockube.controller_manager.controllers.job import policies
from mockube.controller_manager.controllers.legacytokencleaner import controller as legacy_tokens
from mockube.controller_manager.controllers.namespace import deletion
from mockube.controller_manager.controllers.nodelifecycle import health, taints, zones
from mockube.controller_manager.controllers.serviceloadbalancer import controller as load_balancers
from mockube.controller_manager.controllers.storageversionmigrator import migrations
from mockube.controller_manager.controllers.tainteviction import controller as taint_eviction
from tests.support.controllers import autoscaling
from tests.support.controllers.fake_caches import FakeCaches

RECORD = Path(__file__).parents[2] / "unit/controller_manager/random_inputs.json"
CALLS = 250
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SECONDS = (-60, 0, 5, 15, 29, 31, 60, 110, 299, 301, 5000, 90000)


class Inputs:
    """Chooses values."""

    def __init__(self, name):
        self._random = SeededRandom().stream(name)

    def choose(self, *values):
        return values[int.from_bytes(self._random.bytes(4)) % len(values)]

    def flag(self):
        return self._random.bytes(1)[0] % 2 == 1

    def some(self, *values):
        return [value for value in values if self.flag()]

    def fields(self, **values):
        """Return some fields, each with one of its values."""
        return {name: self.choose(*values[name]) for name in values if self.choose(1, 1, 0)}

    def ago(self):
        return format_time(NOW - timedelta(seconds=self.choose(*SECONDS)))

    def conditions(self, *types, statuses=("True", "False", "Unknown")):
        return [
            {
                "type": each,
                "status": self.choose(*statuses),
                "lastHeartbeatTime": self.ago(),
                "lastUpdateTime": self.ago(),
            }
            for each in self.some(*types)
        ]


# --- HorizontalPodAutoscaler


def _pods(inputs):
    for at in range(inputs.choose(1, 2, 3, 5)):
        yield autoscaling.pod(
            f"p{at}",
            phase=inputs.choose("Running", "Running", "Running", "Pending", "Failed"),
            ready=inputs.choose("True", "True", "False"),
            started=timedelta(seconds=inputs.choose(20, 90, 3600)),
            changed=timedelta(seconds=inputs.choose(5, 30, 61, 3000)),
            deleting=inputs.choose(0, 0, 0, 1) == 1,
        )


def _scaling(inputs):
    tolerances = inputs.choose((0.1, 0.1), (0.0, 0.0), (0.0, 0.4), (0.4, 0.0))
    found = autoscaling.situation(
        *_pods(inputs), spec_replicas=inputs.choose(1, 2, 3, 6), tolerances=tolerances
    )
    values = [inputs.choose(None, 0, 50, 200, 500, 900, 2500) for _ in range(6)]
    return found, autoscaling.samples(
        *values, window=inputs.choose(timedelta(seconds=30), autoscaling.MINUTE)
    )


def _utilization(inputs):
    found, samples = _scaling(inputs)
    container = inputs.choose("", "", "", "c0", "x")
    return replicas.replicas_for_utilization(
        found, samples, "cpu", container=container, target=inputs.choose(10, 50, 100)
    )


def _average(inputs):
    found, samples = _scaling(inputs)
    return replicas.replicas_for_average(
        found, samples, inputs.choose("cpu", ""), target=inputs.choose(1, 100, 400, 5000)
    )


def _total(inputs):
    found, _ = _scaling(inputs)
    usage, target = inputs.choose(0, 90, 100, 109, 111, 500, 10**19), inputs.choose(1, 50, 100)
    return (
        replicas.replicas_for_value(found, usage, target=target),
        replicas.replicas_for_value_per_pod(found, usage, target=target),
    )


def _rules(inputs):
    policy = {"type": ("Pods", "Percent"), "value": (1, 3, 50, 100), "periodSeconds": (15, 60, 300)}
    policies_ = [
        {name: inputs.choose(*values) for name, values in policy.items()} for _ in range(inputs.choose(1, 2))
    ]
    select = inputs.choose("Max", "Min", "Disabled")
    rules = {"policies": policies_, "selectPolicy": select}
    return rules | inputs.fields(stabilizationWindowSeconds=(0, 60, 300))


def _counts(inputs):
    return tuple(
        behavior.TimedCount(inputs.choose(1, 2, 5, 9), NOW - timedelta(seconds=inputs.choose(*SECONDS[1:])))
        for _ in range(inputs.choose(0, 1, 3))
    )


def _limited(inputs):
    rules = inputs.choose(
        None, {direction: _rules(inputs) for direction in inputs.some("scaleUp", "scaleDown")}
    )
    limits = behavior.ScalingLimits(
        minimum=inputs.choose(0, 1, 3),
        maximum=inputs.choose(4, 10, 100),
        current=inputs.choose(0, 1, 4, 8),
        downscale_stabilization=timedelta(seconds=300),
        now=NOW,
    )
    history = behavior.ScalingHistory(
        recommendations=_counts(inputs), scale_up_events=_counts(inputs), scale_down_events=_counts(inputs)
    )
    limited = behavior.limit(rules, inputs.choose(0, 1, 3, 5, 8, 20, 200), limits, history)
    scaled = behavior.with_scaling(limited.history, rules, limits.current, limited.replicas, NOW)
    return limited, scaled, behavior.with_initial_recommendation(history, 7, NOW)


# --- Job


def _failure(inputs):
    def rule():
        on_codes = {"operator": inputs.choose("In", "NotIn"), "values": inputs.some(0, 1, 42, 137)}
        on_codes |= inputs.fields(containerName=("c", "d"))
        patterns = [
            {"type": inputs.choose("DisruptionTarget", "X")} | inputs.fields(status=("True", "False"))
        ]
        on = inputs.choose({"onExitCodes": on_codes}, {"onPodConditions": patterns})
        return {"action": inputs.choose("FailJob", "Ignore", "Count", "FailIndex"), **on}

    def container(name):
        ended = {"terminated": inputs.fields(exitCode=(0, 1, 42, 137))}
        return {"name": name, "state": inputs.choose(ended, ended, {"running": {}}, {})}

    status = {"conditions": inputs.conditions("DisruptionTarget", "X")}
    status |= {
        field: [*map(container, inputs.some("c", "d"))]
        for field in inputs.some("containerStatuses", "initContainerStatuses")
    }
    pod = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {}, "status": status}
    job = {"spec": {"podFailurePolicy": {"rules": [rule() for _ in range(inputs.choose(0, 1, 2))]}}}
    failure = policies.pod_failure(job, PodView.of(pod))
    return failure, failure.counts


def _success(inputs):
    def rule():
        return inputs.fields(succeededCount=(1, 2, 3), succeededIndexes=("0", "0-2", "1,3", "9"))

    job = {
        "spec": {
            "completions": 5,
            "successPolicy": {"rules": [rule() for _ in range(inputs.choose(0, 1, 2))]},
        }
    }
    return policies.success_message(job, inputs.choose((), ((0, 0),), ((0, 2),), ((1, 1), (3, 4))))


# --- nodes


def _taint(inputs, key):
    return {"key": key, "effect": inputs.choose("NoExecute", "NoSchedule")} | inputs.fields(
        value=("a", "b"), timeAdded=(inputs.ago(),)
    )


KEYS = tuple(
    f"node.kubernetes.io/{name}"
    for name in (
        "not-ready",
        "unreachable",
        "memory-pressure",
        "disk-pressure",
        "unschedulable",
        "pid-pressure",
        "network-unavailable",
        "out-of-service",
    )
)


def _node(inputs):
    labels = inputs.fields(
        **{
            "topology.kubernetes.io/zone": ("a", "b"),
            "topology.kubernetes.io/region": ("r",),
            "node.kubernetes.io/exclude-disruption": ("",),
        }
    )
    types = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")
    return {
        "metadata": {"name": "n", "creationTimestamp": inputs.ago(), "labels": labels},
        "spec": {"taints": [_taint(inputs, key) for key in inputs.some("k", *KEYS)]}
        | inputs.fields(unschedulable=(True, False)),
        "status": {"conditions": inputs.conditions(*types)},
    }


def _node_taints(inputs):
    node = _node(inputs)
    return (
        taints.taints_of(node),
        taints.with_no_schedule_taints(node, NOW),
        taints.with_no_execute_taint(node, inputs.choose("True", "False", "Unknown"), NOW),
        taints.has_no_execute_taint(node),
        zones.zone_of(node),
        zones.label_of(zones.zone_of(node)),
        zones.zone_and_readiness(node),
        health.unknown_conditions(node, NOW),
        taint_eviction.no_execute_taints(node),
    )


def _health(inputs):
    seen = None
    for _ in range(inputs.choose(1, 2, 3)):
        lease = inputs.choose(
            None,
            {},
            {"metadata": {"resourceVersion": inputs.choose("1", "2")}, "spec": {"renewTime": inputs.ago()}},
        )
        seen = health.observe(seen, _node(inputs), lease, NOW - timedelta(seconds=inputs.choose(*SECONDS)))
    return seen, health.is_silent(seen, NOW, timedelta(seconds=50))


def _zone(inputs):
    limits = zones.EvictionLimits(rate=0.1, slow_rate=0.01, threshold=0.55, large=50)
    nodes = inputs.choose(0, 1, 3, 4, 10, 51)
    size = zones.ZoneSize(nodes=nodes, not_ready=min(nodes, inputs.choose(0, 1, 2, 3, 6, 30, 51)))
    state = zones.state_of(size, limits)
    return state.name, zones.rate_of(state, nodes, limits)


def _toleration(inputs):
    found = [_taint(inputs, key) for key in inputs.some("k", *KEYS[:2])]
    tolerations = [
        inputs.fields(
            key=("k", *KEYS[:2]),
            operator=("Exists", "Equal"),
            value=("a", "b"),
            effect=("NoExecute", "NoSchedule"),
            tolerationSeconds=(-1, 0, 10, 300),
        )
        for _ in range(inputs.choose(0, 1, 3))
    ]
    return taint_eviction.tolerated_time(found, tolerations)


# --- certificates and tokens


def _old_request(inputs):
    csr = {
        "metadata": {"name": "c", "creationTimestamp": inputs.ago()},
        "status": {"conditions": inputs.conditions("Approved", "Denied", "Failed", "X")},
    }
    csr["status"] |= inputs.fields(certificate=("bm8=", ""))
    return cleaner.is_obsolete(csr, NOW), requests.is_issued(csr), sorted(requests.types_of_conditions(csr))


def _kubelet_request(inputs):
    names = ("dns_names", "emails", "addresses", "uris")
    values = {name: inputs.choose((), (), (), ("x",)) for name in names}
    request = requests.RequestedCertificate(
        organizations=inputs.choose(("system:nodes",), ("system:nodes",), ("x",), ()),
        common_name=inputs.choose("system:node:n", "system:node:n", "n"),
        **values,
        **{
            field: b""
            for field in requests.RequestedCertificate.__struct_fields__
            if field not in (*names, "organizations", "common_name")
        },
    )
    usages = inputs.some("client auth", "server auth", "digital signature", "key encipherment")
    functions = (
        requests.kubelet_client_problem,
        requests.kubelet_serving_problem,
        requests.client_usages_problem,
    )
    return [function(request, usages) for function in functions]


def _legacy_token(inputs):
    marks = inputs.fields(
        **{
            legacy_tokens.LAST_USED: ("2029-12-31", "2029-01-01", "x"),
            legacy_tokens.INVALID_SINCE: ("2029-12-31", "2029-01-01", "2029-99-01"),
        }
    )
    metadata = {
        "name": "t",
        "namespace": "ns",
        "labels": marks,
        "annotations": inputs.fields(
            **{
                "kubernetes.io/service-account.name": ("a", "b"),
                "kubernetes.io/service-account.uid": ("u", "v"),
            }
        ),
    }
    metadata |= inputs.fields(
        creationTimestamp=("2029-01-01T00:00:00Z", "2029-12-31T00:00:00Z"),
        deletionTimestamp=(None, None, "2029-12-31T00:00:00Z"),
    )
    secret = {"metadata": metadata, "type": legacy_tokens.TYPE}
    account = {
        "metadata": {"name": "a", "namespace": "ns", "uid": "u"},
        "secrets": inputs.choose([{"name": "t"}], [{"name": "t"}], []),
    }
    pod = {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": inputs.choose(
            {}, {}, {"volumes": [{"secret": {"secretName": "t"}}]}, {"imagePullSecrets": [{"name": "t"}]}
        ),
    }
    indexes = {SECRETS: {legacy_tokens.BY_TYPE: lambda each: [each["type"]]}}
    caches = FakeCaches({SECRETS: [secret], SERVICE_ACCOUNTS: [account], PODS: [pod]}, indexes)
    return [token.is_marked for token in legacy_tokens.unused_tokens(caches, NOW, timedelta(days=10))]


# --- garbage, namespaces, Services, migrations


def _dependent(inputs):
    def reference(uid):
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid} | inputs.fields(
            blockOwnerDeletion=(True, False)
        )

    owners = inputs.some("a", "b", "c")
    finalizers = inputs.some("orphan", "foregroundDeletion", "x/y")
    metadata = {
        "name": "d",
        "uid": "d",
        "resourceVersion": "7",
        "finalizers": finalizers,
        "ownerReferences": [*map(reference, owners)],
    }
    obj = {"metadata": metadata | inputs.fields(deletionTimestamp=("2029-12-31T00:00:00Z",))}
    states = [inputs.choose(*decision.OwnerState) for _ in owners]
    return (
        decision.decide(obj, states, has_dependents=inputs.flag(), is_in_cycle=inputs.flag()),
        decision.unblocked_owners(obj),
        references.owners_of(obj),
        references.waits_for_dependents(obj),
        references.waits_for_orphans(obj),
    )


def _remaining(inputs):
    def obj():
        metadata = {"name": "a", "finalizers": inputs.some("x/y")} | inputs.fields(
            deletionTimestamp=(inputs.ago(),)
        )
        return {"metadata": metadata}

    resource = inputs.choose(GroupResource("", "pods"), GroupResource("batch", "jobs"))
    return deletion.estimate_of(resource, [obj() for _ in range(inputs.choose(0, 1, 2))], NOW)


def _balanced(inputs):
    def service():
        spec = inputs.fields(
            type=("LoadBalancer", "LoadBalancer", "ClusterIP"),
            loadBalancerClass=("c",),
            ports=([{"port": 1}], [{"port": 2}]),
            loadBalancerIP=("1.1.1.1",),
            externalTrafficPolicy=("Local", "Cluster"),
            sessionAffinity=("None", "ClientIP"),
            ipFamilies=(["IPv4"],),
        )
        metadata = {
            "name": "s",
            "uid": inputs.choose("u", "u", "v"),
            "finalizers": inputs.some(load_balancers.FINALIZER),
            "annotations": inputs.fields(a=("1", "2")),
        }
        metadata |= inputs.choose({}, {}, {"deletionTimestamp": "2029-12-31T00:00:00Z"})
        return {
            "metadata": metadata,
            "spec": spec,
            "status": {
                "loadBalancer": {
                    "ingress": inputs.some({"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "h"})
                }
            },
        }

    old, new = inputs.choose(None, service()), service()
    return (
        load_balancers.needs_load_balancer(new),
        load_balancers.needs_cleanup(new),
        load_balancers.needs_sync(old, new),
        load_balancers.addresses(new),
        load_balancers.status_patch(new, inputs.choose("", "1.2.3.4")),
        load_balancers.finalizer_patch(new, present=inputs.flag()),
    )


def _migration(inputs):
    def migration(name):
        metadata = {"name": name} | inputs.fields(creationTimestamp=(inputs.ago(),))
        resource = inputs.fields(group=("", "apps"), resource=("pods", "jobs"))
        return {
            "metadata": metadata,
            "spec": {"resource": resource},
            "status": {"conditions": inputs.conditions("Running", "Succeeded", "Failed")},
        }

    found = [migration(name) for name in inputs.some("a", "b", "c")]
    message = migrations.running_message(inputs.choose(0, 2), inputs.choose(0, 5), inputs.choose("", "x"))
    one = migration("d")
    return (
        migrations.next_migration(found, GroupResource("", "pods")),
        message,
        migrations.running_state(one, message, NOW),
        migrations.success(one, inputs.choose(0, 3), NOW),
        migrations.failure(one, "why", NOW),
        migrations.end(one, NOW),
    )


FUNCTIONS = (
    _utilization, _average, _total, _limited, _failure, _success, _node_taints, _health, _zone, _toleration,
    _old_request, _kubelet_request, _legacy_token, _dependent, _remaining, _balanced, _migration,
)  # fmt: skip


def results(function):
    """Return the results of a function for its random inputs; an error of a calculation is a result."""
    inputs = Inputs(function.__name__)
    for _ in range(CALLS):
        try:
            yield repr(function(inputs))
        except replicas.CalculationError as error:
            yield f"{type(error).__name__}: {error}"


def digests(lines):
    return [hashlib.sha256(line.encode()).hexdigest()[:4] for line in lines]


def main():
    record = {function.__name__: " ".join(digests(results(function))) for function in FUNCTIONS}
    RECORD.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    main()
