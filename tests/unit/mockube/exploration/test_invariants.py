import pytest

from mockube.exploration.invariants import (
    LIBRARY,
    InvalidInvariant,
    RevisionState,
    invariant,
    read_invariant,
)
from mockube.operators.end_state import kind_of


def state(after, before=None, **fields):
    """A write of the operator."""
    return RevisionState(object=after, old_object=before, user="operator", operator="operator", **fields)


def holds(name, after, before=None, objects=None, others=(), earlier=()):
    """Return whether an invariant holds after a write; `others` exist beside it, and `earlier` existed."""
    current = [*others, *([after] if after is not None else [])]
    cluster, history = by_kind(current), by_kind([*earlier, *current, *([before] if before else [])])
    found = [after] if objects is None and after is not None else objects or []
    text = read_invariant(name).problem(state(after, before, objects=found, cluster=cluster, history=history))
    assert text in ("", f"{name} does not hold")
    return not text


def by_kind(objects):
    found = {}
    for tree in objects:
        found.setdefault(kind_of(tree), []).append(tree)
    return found


GROUPS = {
    "StatefulSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
    "Certificate": "cert-manager.io/v1",
    "Ingress": "networking.k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "Site": "example.com/v1",
}


def of_kind(kind, name="a", metadata=(), status=None, uid="", **spec):
    """An object in the namespace default, with a spec and a status if they are given."""
    tree = {"apiVersion": GROUPS.get(kind, "v1"), "kind": kind}
    tree["metadata"] = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"{kind}-{name}",
        **dict(metadata),
    }
    return {**tree, **({"spec": spec} if spec else {}), **({"status": status} if status else {})}


def set_of(replicas):
    return of_kind("StatefulSet", "db", replicas=replicas)


def pod(name, index, owner="1"):
    metadata = {"labels": {"apps.kubernetes.io/pod-index": index}, "ownerReferences": [{"uid": owner}]}
    return of_kind("Pod", name, metadata)


def test_expression_has_the_object_and_what_it_was():
    rule = invariant("grows", ["ConfigMap"], "oldObject == null || object.data.n >= oldObject.data.n")
    one, two = {"data": {"n": 1}}, {"data": {"n": 2}}
    assert rule.problem(state(two, one)) == ""
    assert rule.problem(state(one, two)) == f"grows does not hold: {rule.expression}"
    assert rule.problem(state({}, two)) == "grows cannot be evaluated: no such key: data"


def test_expression_has_the_cluster_and_its_history():
    rule = invariant(
        "a", ["Pod"], "cluster['Pod'].size() == 1 && history['Pod'].size() == 2 && user != operator"
    )
    pods = {"cluster": {"Pod": [of_kind("Pod")]}, "history": {"Pod": [of_kind("Pod"), of_kind("Pod")]}}
    assert not rule.problem(
        RevisionState(object=None, old_object=None, **pods, user="admin", operator="operator")
    )
    assert rule.problem(state(None, None, **pods))


@pytest.mark.parametrize(
    ("kinds", "kind", "applies"),
    [
        pytest.param(["*"], "Pod", True, id="all"),
        pytest.param(["Deployment"], "Deployment.apps", True, id="without its group"),
        pytest.param(["Deployment.apps"], "Deployment.apps", True, id="with its group"),
        pytest.param(["Pod"], "PodTemplate", False, id="another"),
    ],
)
def test_kinds(kinds, kind, applies):
    assert invariant("a", kinds, "true").applies_to(kind) is applies


def test_quorum():
    assert holds("quorum-is-kept", set_of(3), set_of(5))
    assert not holds("quorum-is-kept", set_of(2), set_of(5))
    assert holds("quorum-is-kept", None, set_of(5))


def test_bound_claims():
    bound = of_kind("PersistentVolumeClaim", status={"phase": "Bound"})
    assert holds("bound-claims-are-kept", bound)
    assert not holds("bound-claims-are-kept", None, bound)
    assert not holds("bound-claims-are-kept", deleted(bound), bound)
    assert holds("bound-claims-are-kept", None, of_kind("PersistentVolumeClaim", status={"phase": "Lost"}))


def test_ordinals():
    pods = [pod("a", "0"), pod("b", "1"), pod("c", "0", owner="2")]
    assert holds("one-pod-for-each-ordinal", pods[0], objects=pods)
    assert not holds("one-pod-for-each-ordinal", pods[0], objects=[*pods, pod("d", "0")])


def changed(name, **fields):
    """The name of an invariant, and an object before and after a change of fields, such as spec__replicas."""
    both = []
    for index in (0, 1):
        tree = of_kind("Site")
        for path, values in fields.items():
            *parents, last = path.split("__")
            place = tree
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = values[index]
        both.append(tree)
    return pytest.param(name, *both, id=name)


OWNERS = [{"uid": "1"}]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        changed("replicas-are-not-removed", spec__replicas=(2, 0)),
        changed("volume-claims-of-pods-exist", spec__volumeClaimTemplates=([{}], [])),
        changed("observed-generation-grows", status__observedGeneration=(2, 1)),
        changed(
            "observed-generation-is-real", metadata__generation=(1, 1), status__observedGeneration=(1, 2)
        ),
        changed("owners-are-kept", metadata__ownerReferences=(OWNERS, [])),
        changed("secrets-keep-their-type", type=("Opaque", "kubernetes.io/tls")),
        changed("certificates-keep-their-secret", spec__secretName=("a", "b")),
        changed("finalizers-go-at-the-end", metadata__finalizers=(["example.com/a"], [])),
        changed("conditions-are-unique", status__conditions=([{"type": "Ready"}], [{"type": "Ready"}] * 2)),
    ],
)
def test_change_that_an_invariant_forbids(name, before, after):
    assert holds(name, before, before)
    assert not holds(name, after, before)


def test_object_that_is_deleted_loses_owners_and_finalizers():
    begun = of_kind("Site", metadata={"finalizers": ["example.com/a"], "ownerReferences": OWNERS})
    ended = deleted(of_kind("Site"))
    assert holds("finalizers-go-at-the-end", ended, begun)
    assert holds("owners-are-kept", ended, begun)


def test_new_object_of_the_same_name_has_a_history_of_its_own():
    old = of_kind("Site", uid="1", status={"observedGeneration": 5})
    new = of_kind("Site", uid="2", status={"observedGeneration": 1})
    assert holds("observed-generation-grows", new, old)


def deleted(tree):
    return {**tree, "metadata": {**tree["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}


def running(name="db-0", *, ready=True, owner=None, metadata=(), phase="Running", **spec):
    owners = {"ownerReferences": [{**owner, "controller": True}]} if owner else {}
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return of_kind("Pod", name, {**dict(metadata), **owners}, status=status, **spec)


def reference(tree, **fields):
    return {
        "apiVersion": tree["apiVersion"],
        "kind": tree["kind"],
        "name": tree["metadata"]["name"],
        "uid": tree["metadata"]["uid"],
        **fields,
    }


USES = {
    "PersistentVolumeClaim": {"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}]},
    "Secret": {"volumes": [{"secret": {"secretName": "a"}}]},
    "ConfigMap": {"volumes": [{"configMap": {"name": "a"}}]},
    "projected": {"volumes": [{"projected": {"sources": [{"configMap": {"name": "a"}}]}}]},
    "envFrom": {"containers": [{"envFrom": [{"secretRef": {"name": "a"}}]}]},
    "env": {"initContainers": [{"env": [{"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]}]},
    "ServiceAccount": {"serviceAccountName": "a"},
}


@pytest.mark.parametrize(
    ("name", "kind", "use"),
    [
        ("claims-of-running-pods-are-kept", "PersistentVolumeClaim", "PersistentVolumeClaim"),
        ("configuration-of-running-pods-is-kept", "Secret", "Secret"),
        ("configuration-of-running-pods-is-kept", "ConfigMap", "ConfigMap"),
        ("configuration-of-running-pods-is-kept", "ConfigMap", "projected"),
        ("configuration-of-running-pods-is-kept", "Secret", "envFrom"),
        ("configuration-of-running-pods-is-kept", "ConfigMap", "env"),
        ("accounts-of-running-pods-are-kept", "ServiceAccount", "ServiceAccount"),
    ],
)
def test_object_that_running_pods_use_is_kept(name, kind, use):
    used = of_kind(kind, "a")
    pod = running(**USES[use])
    assert not holds(name, None, used, others=[pod])
    assert not holds(name, deleted(used), used, others=[pod])
    assert holds(name, None, of_kind(kind, "b"), others=[pod])
    assert holds(name, None, deleted(used), others=[pod])
    assert holds(name, None, used, others=[deleted(pod)])
    assert holds(name, None, used, others=[running(phase="Succeeded", **USES[use])])
    elsewhere = running(metadata={"namespace": "other"}, **USES[use])
    assert holds(name, None, used, others=[elsewhere])


def test_optional_configuration_may_be_deleted():
    pod = running(volumes=[{"configMap": {"name": "a", "optional": True}}])
    assert holds("configuration-of-running-pods-is-kept", None, of_kind("ConfigMap", "a"), others=[pod])


@pytest.mark.parametrize(
    ("others", "owner", "expected"),
    [
        pytest.param([True, True], set_of(3), True, id="all ready"),
        pytest.param([True, False], set_of(3), False, id="half of the others"),
        pytest.param([False], set_of(3), False, id="the only ready one"),
        pytest.param([], set_of(3), True, id="the only one"),
        pytest.param([False], of_kind("ReplicaSet", "db"), True, id="of a Deployment"),
        pytest.param([False], of_kind("Site", "db"), False, id="of a custom resource"),
        pytest.param([True, False], set_of(0), True, id="scaled down"),
    ],
)
def test_majority_of_ready_pods(others, owner, expected):
    def pod_of(name, ready):
        metadata = {"labels": {"apps.kubernetes.io/pod-index": "2"}}
        return running(name, ready=ready, owner=reference(owner), metadata=metadata)

    pods = [pod_of(f"db-{index}", ready) for index, ready in enumerate(others)]
    rest = [
        owner,
        *pods,
        deleted(running("x", ready=False, owner=reference(owner))),
        running("other", ready=False),
    ]
    one = pod_of("db-2", ready=True)
    assert holds("ready-pods-keep-a-majority", deleted(one), one, others=rest) is expected
    unready = pod_of("db-2", ready=False)
    assert holds("ready-pods-keep-a-majority", deleted(unready), unready, others=rest)


@pytest.mark.parametrize(
    ("policy", "index", "was_ready", "expected"),
    [
        pytest.param("OrderedReady", "1", True, True, id="was ready"),
        pytest.param("OrderedReady", "1", False, False, id="was never ready"),
        pytest.param("OrderedReady", "0", False, True, id="first"),
        pytest.param("Parallel", "1", False, True, id="parallel"),
    ],
)
def test_order_of_ordinals(policy, index, was_ready, expected):
    owner = of_kind("StatefulSet", "db", podManagementPolicy=policy)
    first, second = (
        running(
            f"db-{at}",
            ready=is_ready,
            owner=reference(owner),
            metadata={"labels": {"apps.kubernetes.io/pod-index": at}},
        )
        for at, is_ready in (("0", was_ready), (index, False))
    )
    found = holds("earlier-ordinals-were-ready", second, others=[owner], earlier=[first, running("other")])
    assert found is expected


def test_replicas_of_an_autoscaled_workload():
    target = {"kind": "Deployment", "name": "a"}
    scaler = of_kind("HorizontalPodAutoscaler", scaleTargetRef=target)
    change = [of_kind("Deployment", replicas=replicas) for replicas in (2, 3)]
    name = "replicas-of-autoscaled-workloads-are-kept"
    assert not holds(name, *change, others=[scaler])
    assert holds(name, *change)
    assert holds(name, change[0], change[0], others=[scaler])
    other = of_kind("HorizontalPodAutoscaler", scaleTargetRef={**target, "name": "b"})
    assert holds(name, *change, others=[other])


@pytest.mark.parametrize(
    ("name", "known", "owner", "expected"),
    [
        pytest.param("owners-are-in-the-same-namespace", "default", "StatefulSet-db", True, id="same"),
        pytest.param("owners-are-in-the-same-namespace", "other", "StatefulSet-db", False, id="other"),
        pytest.param("owners-have-existed", "default", "StatefulSet-db", True, id="known"),
        pytest.param("owners-have-existed", "default", "another", False, id="never existed"),
    ],
)
def test_owners(name, known, owner, expected):
    found = of_kind("StatefulSet", "db", {"namespace": known})
    child = of_kind("Secret", metadata={"ownerReferences": [reference(found, uid=owner)]})
    assert holds(name, child, others=[found]) is expected
    assert holds(name, child, child, others=[found])


def test_owner_that_has_ended_has_existed():
    ended = of_kind("Site")
    child = of_kind("Secret", metadata={"ownerReferences": [reference(ended)]})
    assert holds("owners-have-existed", child, earlier=[ended])


def test_jobs_of_a_schedule_time():
    def job(name, at, **fields):
        owner = {"uid": "1", "controller": True}
        annotations = {"batch.kubernetes.io/cronjob-scheduled-timestamp": at}
        return of_kind("Job", name, {"annotations": annotations, "ownerReferences": [owner]}, **fields)

    name, first = "jobs-run-once-for-each-time", job("a", "10:00")
    assert holds(name, first)
    assert not holds(name, job("b", "10:00"), earlier=[first])
    assert holds(name, job("b", "10:01"), earlier=[first])
    assert holds(name, of_kind("Job", "b"), earlier=[first])


def finished(type_):
    return of_kind("Job", status={"conditions": [{"type": type_, "status": "True"}]})


def test_finished_jobs():
    name = "finished-jobs-stay-finished"
    assert not holds(name, of_kind("Job"), finished("Complete"))
    assert not holds(name, of_kind("Job"), finished("Failed"))
    assert holds(name, of_kind("Job"), finished("Suspended"))
    assert holds(name, finished("Complete"), finished("Complete"))
    assert holds(name, of_kind("Job", uid="another"), finished("Complete"))


@pytest.mark.parametrize(
    "user",
    [of_kind("Certificate", secretName="a"), of_kind("Ingress", tls=[{"secretName": "a"}])],
    ids=["certificate", "ingress"],
)
def test_secrets_of_certificates(user):
    name, secret = "secrets-of-certificates-are-kept", of_kind("Secret")
    assert not holds(name, None, secret, others=[user])
    assert holds(name, None, secret, others=[deleted(user)])
    assert holds(name, None, of_kind("Secret", "b"), others=[user])


def test_claims_of_volumes():
    claim = of_kind("PersistentVolumeClaim")
    old, new = (
        of_kind("PersistentVolume", status={"phase": "Bound"}, claimRef={"uid": uid})
        for uid in (claim["metadata"]["uid"], "other")
    )
    assert not holds("volumes-keep-their-claim", new, old, others=[claim])
    assert holds("volumes-keep-their-claim", old, old, others=[claim])
    assert holds("volumes-keep-their-claim", new, old)


def test_definitions_in_use():
    definition = of_kind("CustomResourceDefinition", names={"kind": "Site"}, group="example.com")
    assert not holds("definitions-in-use-are-kept", deleted(definition), definition, others=[of_kind("Site")])
    assert holds("definitions-in-use-are-kept", deleted(definition), definition)


def test_ready_replicas():
    counts = {"replicas": 3, "readyReplicas": 2, "availableReplicas": 1}
    assert holds("ready-replicas-are-real", of_kind("Deployment", status=counts))
    assert not holds("ready-replicas-are-real", of_kind("Deployment", status={**counts, "readyReplicas": 4}))
    assert not holds(
        "ready-replicas-are-real", of_kind("Deployment", status={**counts, "availableReplicas": 3})
    )


def test_transition_times():
    def site(status, at):
        return of_kind(
            "Site", status={"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": at}]}
        )

    name = "transition-times-change-with-the-status"
    assert not holds(name, site("True", "10:01"), site("True", "10:00"))
    assert holds(name, site("False", "10:01"), site("True", "10:00"))
    assert holds(name, site("True", "10:00"), site("True", "10:00"))


@pytest.mark.parametrize("name", LIBRARY)
def test_library_holds_for_a_plain_object(name):
    plain = of_kind("Site", metadata={"generation": 1})
    assert holds(name, plain)
    assert holds(name, plain, plain)


@pytest.mark.parametrize("name", LIBRARY)
def test_library_holds_for_the_deletion_of_another_user(name):
    one = running(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "a"}}])
    claim = of_kind("PersistentVolumeClaim", status={"phase": "Bound"})
    write = RevisionState(
        object=None, old_object=claim, user="admin", operator="operator", cluster={"Pod": [one]}
    )
    assert read_invariant(name).problem(write) == ""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(3, "must be a map or the name of one of the library, not 3", id="number"),
        pytest.param({"rule": "true"}, 'unknown field "rule"', id="unknown field"),
        pytest.param({}, "expression: must be a text in CEL", id="no expression"),
        pytest.param({"expression": "1"}, "expression: must be a bool", id="no bool"),
        pytest.param({"expression": "true", "kinds": "Pod"}, "kinds: must be a list of kinds", id="kinds"),
    ],
)
def test_mistakes(value, message):
    with pytest.raises(InvalidInvariant, match=message):
        read_invariant(value)
