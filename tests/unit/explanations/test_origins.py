"""Whom an explanation names: who wrote what is missing, what names it, what holds a deletion, what a program has read."""

import pytest

from mockube.apimachinery.groups import GroupResource
from mockube.explanations.catalog import explain
from mockube.explanations.facts import FAULTS, Member
from mockube.explanations.refused import explain_request
from tests.support.explained import (
    condition,
    event,
    facts_of,
    node_of,
    pod_of,
    resource_of,
    thing,
    with_state,
)

CONTROLLED = {
    "kind": "StatefulSet",
    "apiVersion": "apps/v1",
    "name": "db",
    "uid": "uid-db",
    "controller": True,
}
CREATING = {"waiting": {"reason": "ContainerCreating"}}


def explained(obj, *objects, **more):
    return explain(resource_of(obj), obj, facts_of(obj, node_of(), *objects, **more))


def origins(found):
    return [(f"{each.object.kind}/{each.object.name}", each.path) for each in found.origins]


# --- what is missing, and what names it


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ({"configMap": {"name": "conf"}}, "ConfigMap/conf"),
        ({"secret": {"secretName": "conf"}}, "Secret/conf"),
        ({"projected": {"sources": [{"configMap": {"name": "conf"}}]}}, "ConfigMap/conf"),
    ],
)
def test_volume_of_what_does_not_exist_names_it_and_the_field_that_needs_it(source, missing):
    metadata = {"ownerReferences": [CONTROLLED]}
    pod = pod_of(metadata=metadata, status=with_state(CREATING), volumes=[{"name": "v", **source}])
    found = explained(pod)
    assert origins(found) == [
        (missing, ()),
        ("StatefulSet/db", ("spec", "template", "spec", "volumes", Member("v"))),
    ]
    assert found.remedies[0].command.startswith("kubectl -n default create ")


def test_variable_of_what_does_not_exist_names_the_variable():
    reference = {"configMapKeyRef": {"name": "conf", "key": "mode"}}
    container = {"env": [{"name": "MODE", "valueFrom": reference}]}
    state = {"waiting": {"reason": "CreateContainerConfigError"}}
    found = explained(pod_of(container=container, status=with_state(state)))
    assert origins(found) == [
        ("ConfigMap/conf", ()),
        ("Pod/web", ("spec", "containers", Member("c"), "env", Member("MODE"))),
    ]


@pytest.mark.parametrize(
    ("message", "missing", "field"),
    [
        (
            'error looking up service account default/db: serviceaccount "db" not found',
            "ServiceAccount/db",
            "serviceAccountName",
        ),
        ("no PriorityClass with name db was found", "PriorityClass/db", "priorityClassName"),
        ('pod rejected: RuntimeClass "db" not found', "RuntimeClass/db", "runtimeClassName"),
    ],
)
def test_pods_that_name_what_does_not_exist_are_refused_because_of_the_template(message, missing, field):
    owner = thing("StatefulSet", "db", api_version="apps/v1", spec={"replicas": 2}, status={})
    found = explained(owner, event(owner, "FailedCreate", f'pods "db-0" is forbidden: {message}'))
    assert origins(found) == [(missing, ()), ("StatefulSet/db", ("spec", "template", "spec", field))]
    assert found.related == ()
    assert found.remedies


# --- what holds a deletion


DELETED = {"deletionTimestamp": "2026-01-31T11:59:00Z"}


def test_namespace_names_the_authors_of_finalizers_and_of_its_deletion():
    namespace = thing("Namespace", "default", namespace="", metadata=DELETED)
    kept = thing("ConfigMap", "kept", metadata={**DELETED, "finalizers": ["example.com/x"]})
    found = explained(namespace, kept)
    assert origins(found) == [
        ("ConfigMap/kept", ("metadata", "finalizers")),
        ("Namespace/default", ("metadata", "deletionTimestamp")),
    ]
    assert '"op":"remove","path":"/metadata/finalizers/0"' in found.remedies[-1].command
    of_object = explained(kept, namespace)
    assert ("Namespace/default", ("metadata", "deletionTimestamp")) in origins(of_object)


# --- what a program has read


CRASHED = with_state(
    {"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": {"exitCode": 1, "reason": "Error"}}
)
CONFIG = thing("ConfigMap", "conf", data={"default.conf": "locatio /", "other.conf": ""})


def crash(log, mount, **volume):
    volumes = [{"name": "v", "configMap": {"name": "conf", **volume}}]
    pod = pod_of(container={"volumeMounts": [{"name": "v", **mount}]}, status=CRASHED, volumes=volumes)
    return explained(pod, CONFIG, logs={"c": log})


@pytest.mark.parametrize(
    ("log", "mount", "volume"),
    [
        ("begin\nunknown directive in /etc/conf.d/default.conf:1", {"mountPath": "/etc/conf.d"}, {}),
        ("bad /etc/x.conf", {"mountPath": "/etc/x.conf", "subPath": "default.conf"}, {}),
        ('open "/etc/a/b": bad', {"mountPath": "/etc/"}, {"items": [{"key": "default.conf", "path": "a/b"}]}),
        ("/etc/other.conf is read\n/etc/default.conf: bad", {"mountPath": "/etc"}, {}),
    ],
)
def test_file_that_a_log_names_is_the_key_of_its_object(log, mount, volume):
    found = crash(log, mount, **volume)
    assert origins(found)[0] == ("ConfigMap/conf", ("data", "default.conf"))
    assert "the key default.conf of the ConfigMap conf" in found.cause


@pytest.mark.parametrize("log", ["bad /etc/default.conf.bak", "bad /etc/default.configuration", "bad"])
def test_file_that_a_log_does_not_name_is_no_cause(log):
    found = crash(log, {"mountPath": "/etc"})
    assert origins(found) == [("Pod/web", ("spec", "containers", Member("c")))]


def test_undoing_the_change_of_a_file_is_the_first_remedy():
    path = ("data", "default.conf")
    author = {"user": "bob", "verb": "patch"}
    write = {
        "revision": 7,
        "type": "MODIFIED",
        "author": author,
        "before": "location /",
        "after": "locatio /",
    }
    volumes = [{"name": "v", "configMap": {"name": "conf"}}]
    mounts = [{"name": "v", "mountPath": "/etc"}]
    pod = pod_of(container={"volumeMounts": mounts}, status=CRASHED, volumes=volumes)
    found = explained(pod, CONFIG, logs={"c": "bad /etc/default.conf"}, writes={("conf", path): [write]})
    assert found.remedies[0].text == 'Undo what bob changed: "location /" again:'
    assert '{"data":{"default.conf":"location /"}}' in found.remedies[0].command


# --- memory


def killed(limit, write, *, finished="2026-01-31T11:58:00Z", actual=None):
    end = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": finished}
    resources = {"resources": {"limits": {"memory": actual}}} if actual else {}
    status = with_state(
        {"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": end}, **resources
    )
    pod = pod_of(container={"resources": {"limits": {"memory": limit}}}, status=status)
    path = ("spec", "containers", Member("c"), "resources")
    return explained(pod, writes={("web", path): [write] if write else []})


def resized(before, after, time="2026-01-31T11:57:00Z"):
    limits = {name: {"limits": {"memory": value}} for name, value in (("before", before), ("after", after))}
    return {"revision": 7, "type": "MODIFIED", "time": time, "author": {"user": "bob"}, **limits}


def test_more_memory_that_was_not_enough_is_not_taken_back():
    raised, lowered = killed("200Mi", resized("100Mi", "200Mi")), killed("50Mi", resized("100Mi", "50Mi"))
    assert not any("Undo" in each.text for each in raised.remedies)
    assert any('"memory":"400Mi"' in each.command for each in raised.remedies)
    assert lowered.remedies[0].text.startswith("Undo what bob changed")


def test_end_before_a_resize_is_one_at_the_limit_of_then():
    found = killed("200Mi", resized("100Mi", "200Mi", time="2026-01-31T11:59:00Z"))
    assert "its limit of 100Mi (OOMKilled), which was changed to 200Mi since then" in found.cause
    assert not any("memory" in each.command for each in found.remedies)


def test_resize_that_is_not_carried_out_is_said():
    found = killed("8Gi", None, actual="100Mi")
    assert "its limit of 100Mi (OOMKilled); its resize to 8Gi is not carried out" in found.cause


# --- faults and policies


def fault(**spec):
    return thing("Fault", "cut", api_version="control.mockube.dev/v1alpha1", namespace="", spec=spec)


def test_fault_says_what_it_does():
    cut = fault(match={"node": "a"}, partition={})
    found = explain(FAULTS, cut, facts_of(cut, node_of()))
    assert found.cause == "it has cut the node a off"
    assert [each.object.name for each in found.related] == ["a"]
    assert origins(found) == [("Fault/cut", ())]
    assert [each.command for each in found.remedies] == ["mockube fault remove cut"]
    harmful = fault(match={"user": "ada"}, refuse={"status": 500}, share=0.5)
    assert explain(FAULTS, harmful, facts_of()).cause == "it harms requests that match user ada: refuse"
    ended = {**harmful, "status": {"hits": 3, "isExhausted": True}}
    assert explain(FAULTS, ended, facts_of()).state == "NoProblem"


def test_request_that_a_fault_answered_names_the_fault():
    recorded = {
        "spec": {"user": "ada", "verb": "get"},
        "status": {"code": 500, "message": "m", "fault": "cut", "answeredByFault": True},
    }
    assert origins(explain_request(recorded, facts_of())) == [("Fault/cut", ())]


def denied_secret(*validations):
    policy = thing(
        "ValidatingAdmissionPolicy",
        "p",
        api_version="admissionregistration.k8s.io/v1",
        namespace="",
        spec={"validations": [*validations]},
    )
    message = "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
    recorded = {"spec": {"user": "ada", "verb": "create"}, "status": {"code": 422, "message": message}}
    return explain_request(recorded, facts_of(policy)).cause.partition("denied it: ")[2]


def test_message_of_a_policy_is_no_part_of_a_secret_and_one_of_an_expression_may_be():
    rule, other = ({"expression": "false", "message": text} for text in ("no secrets", "nothing"))
    assert denied_secret(rule) == "no secrets"
    assert denied_secret(rule, other) == "one of: no secrets; nothing"
    assert "is not recorded" in denied_secret(
        rule, {"expression": "false", "messageExpression": "object.data.a"}
    )


# --- autoscalers, Jobs and CronJobs


HPAS = GroupResource("autoscaling", "horizontalpodautoscalers")


@pytest.mark.parametrize(
    ("workload", "change"),
    [(("Deployment", "web"), '"name":"web"'), (("StatefulSet", "wbe"), '"kind":"StatefulSet","name":"wbe"')],
)
def test_autoscaler_of_what_does_not_exist_names_what_it_may_mean(workload, change):
    kind, name = workload
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "wbe"}
    conditions = [condition("AbleToScale", "False", "FailedGetScale", 'deployments.apps "wbe" not found')]
    autoscaler = thing(
        "HorizontalPodAutoscaler",
        "h",
        api_version="autoscaling/v2",
        spec={"scaleTargetRef": target},
        status={"conditions": conditions},
    )
    others = [thing("Deployment", "unlike", api_version="apps/v1"), thing(kind, name, api_version="apps/v1")]
    found = explain(HPAS, autoscaler, facts_of(autoscaler, *others))
    assert found.cause == "it does not scale anything: the Deployment wbe does not exist"
    assert change in found.remedies[0].command
    assert origins(found) == [
        ("HorizontalPodAutoscaler/h", ("spec", "scaleTargetRef")),
        ("Deployment/wbe", ()),
    ]


@pytest.mark.parametrize(
    ("reason", "field"),
    [("DeadlineExceeded", "activeDeadlineSeconds"), ("PodFailurePolicy", "podFailurePolicy")],
)
def test_rule_that_failed_a_job_is_named_with_what_would_change_it(reason, field):
    spec = {"activeDeadlineSeconds": 5, "template": {"spec": {}}}
    job = thing(
        "Job",
        "j",
        api_version="batch/v1",
        spec=spec,
        status={"conditions": [condition("Failed", "True", reason)]},
    )
    found = explained(job)
    assert origins(found) == [("Job/j", ("spec", field))]
    assert f"spec.{field}, in a Job that replaces j." in found.remedies[-1].text


DEADLINE = condition("Failed", "True", "DeadlineExceeded", "m")


def late(*objects, **spec):
    job = thing(
        "Job",
        "j",
        api_version="batch/v1",
        spec={"activeDeadlineSeconds": 5, "template": {"spec": {"containers": []}}, **spec},
        status={"conditions": [DEADLINE]},
    )
    return explained(job, *objects)


def test_job_whose_deadline_passed_without_a_pod_is_not_given_more_time():
    found = late(parallelism=0)
    assert found.cause == (
        "the Job has failed, DeadlineExceeded: m: the Job has no pods, because spec.parallelism is 0"
    )
    assert origins(found) == [("Job/j", ("spec", "parallelism"))]
    assert [each.text for each in found.remedies] == [
        "A Job that has ended does not start again: make one that replaces j."
    ]


def test_job_whose_pod_waited_until_its_deadline_says_for_what():
    job = thing("Job", "j", api_version="batch/v1")
    created = event(job, "SuccessfulCreate", "Created pod: j-1")
    waited = event({"metadata": {"uid": "x"}}, "FailedScheduling", "0/1 nodes are available")
    waited["involvedObject"]["name"] = "j-1"
    found = late(created, waited)
    assert found.cause.endswith(": m: its pod j-1 had not run: 0/1 nodes are available")
    assert origins(found) == [("Job/j", ("spec", "template"))]


def test_deadline_of_the_jobs_of_a_cron_job_is_changed_there():
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "1", "controller": True}
    job = thing(
        "Job",
        "j",
        api_version="batch/v1",
        metadata={"ownerReferences": [owner]},
        spec={"activeDeadlineSeconds": 5, "template": {"spec": {}}},
        status={"conditions": [condition("Failed", "True", "DeadlineExceeded")]},
    )
    found = explained(job)
    assert origins(found) == [("CronJob/nightly", ("spec", "jobTemplate", "spec", "activeDeadlineSeconds"))]
    assert '{"jobTemplate":{"spec":{"activeDeadlineSeconds":10}}}' in found.remedies[0].command


@pytest.mark.parametrize(
    ("reason", "field", "change"),
    [("InvalidSchedule", "schedule", "0 0 * * *"), ("UnknownTimeZone", "timeZone", "Etc/UTC")],
)
def test_cron_job_that_never_starts_a_job_has_a_remedy(reason, field, change):
    cron_job = thing(
        "CronJob", "n", api_version="batch/v1", spec={"schedule": "0 0 31 2 *", "timeZone": "No/Where"}
    )
    found = explained(cron_job, event(cron_job, reason, "invalid"))
    assert origins(found) == [("CronJob/n", ("spec", field))]
    assert change in found.remedies[0].command


def test_creation_of_a_job_that_a_quota_refuses_is_explained_as_of_a_pod():
    cron_job = thing("CronJob", "n", api_version="batch/v1", spec={"schedule": "* * * * *"})
    message = 'jobs.batch "n-1" is forbidden: exceeded quota: few, requested: count/jobs.batch=1, used: count/jobs.batch=1, limited: count/jobs.batch=1'
    found = explained(cron_job, event(cron_job, "FailedCreate", message))
    assert origins(found) == [("ResourceQuota/few", ("spec", "hard"))]
    assert any('"count/jobs.batch":"2"' in each.command for each in found.remedies)


def test_job_with_a_pod_that_is_evicted_names_the_user_of_the_eviction():
    job = thing("Job", "j", api_version="batch/v1", spec={"template": {"spec": {}}}, status={"active": 1})
    owner = {"kind": "Job", "apiVersion": "batch/v1", "name": "j", "uid": "uid-j", "controller": True}
    metadata = {"ownerReferences": [owner]}
    status = {"phase": "Running", "conditions": [condition("Ready", "True")]}
    pods = [
        pod_of("new", metadata=metadata, status=status),
        pod_of("old", metadata=metadata | DELETED, status=status),
    ]
    author = {"user": "bob", "subresource": "eviction", "agent": "kubectl/v1"}
    write = {"revision": 7, "type": "MODIFIED", "author": author}
    found = explained(
        job, *pods, event(job, "SuccessfulCreate", "Created pod: old"), writes={("old", ()): [write]}
    )
    assert "1 pod runs" in found.cause
    assert "the pod old was evicted by bob with kubectl/v1" in found.cause
    assert ("Pod/old", ()) in origins(found)


# --- what else refuses, or harms itself


STS = thing("StatefulSet", "db", api_version="apps/v1", spec={"replicas": 2}, status={})
SERVICE = {"namespace": "ops", "name": "guard", "path": "/"}
WEBHOOK = thing(
    "ValidatingWebhookConfiguration",
    "guard",
    api_version="admissionregistration.k8s.io/v1",
    namespace="",
    webhooks=[{"name": "g.example.com", "failurePolicy": "Fail", "clientConfig": {"service": SERVICE}}],
)


def refused(message, *objects):
    return explained(STS, event(STS, "FailedCreate", message), *objects)


def test_webhook_that_cannot_be_called_is_named_by_the_workload():
    found = refused('failed calling webhook "g.example.com": failed to call webhook: no route', WEBHOOK)
    assert origins(found) == [
        ("ValidatingWebhookConfiguration/guard", ("webhooks", Member("g.example.com"))),
        ("Service/guard", ()),
    ]
    assert '"name":"g.example.com","failurePolicy":"Ignore"' in found.remedies[1].command
    denied = refused('admission webhook "g.example.com" denied the request: no', WEBHOOK)
    assert not any("Ignore" in each.command for each in denied.remedies)


def test_limit_range_that_refuses_pods_is_named():
    limits = thing("LimitRange", "small", spec={"limits": []})
    found = refused('pods "db-0" is forbidden: maximum memory usage per Pod is 1Mi, but limit is 2Mi', limits)
    assert origins(found)[0] == ("LimitRange/small", ("spec", "limits"))


MAXIMUM = "maximum memory usage per Container is 128Mi, but limit is 1Gi"
MINIMUM = "minimum cpu usage per Container is 100m, but request is 50m"
OVER_LIMIT = 'spec.containers[0].resources.requests: Invalid value: "100Mi": must be less than or equal to memory limit of 64Mi'


@pytest.mark.parametrize(
    ("message", "resources", "flags"),
    [
        (MAXIMUM, {"limits": {"memory": "1Gi"}}, "--limits=memory=128Mi"),
        (
            MAXIMUM,
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}},
            "--limits=memory=128Mi --requests=memory=128Mi",
        ),
        (
            MAXIMUM,
            {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Mi"}},
            "--limits=memory=128Mi",
        ),
        (MAXIMUM.replace(", but limit is 1Gi", ".  No limit is specified"), {}, "--limits=memory=128Mi"),
        (MINIMUM, {"requests": {"cpu": "50m"}}, "--requests=cpu=100m"),
        (OVER_LIMIT, {"requests": {"memory": "100Mi"}}, "--limits=memory=100Mi"),
    ],
)
def test_container_that_a_limit_range_refuses_is_changed(message, resources, flags):
    kept = {"limits": {"memory": "128Mi", "cpu": "1"}, "requests": {"cpu": "1", "memory": "1Mi"}}
    containers = [{"name": "kept", "resources": kept}, {"name": "c", "resources": resources}]
    owner = {**STS, "spec": {**STS["spec"], "template": {"spec": {"containers": containers}}}}
    found = explained(owner, event(owner, "FailedCreate", f'pods "db-0" is forbidden: {message}'))
    assert found.remedies[0].command == (
        f"kubectl -n default set resources statefulset/db --containers=c {flags}"
    )


def test_conversion_that_fails_names_its_definition_and_the_service():
    definition = thing(
        "CustomResourceDefinition",
        "shops.example.com",
        api_version="apiextensions.k8s.io/v1",
        namespace="",
        spec={"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"service": SERVICE}}}},
    )
    message = "conversion webhook for example.com/v1, Kind=Shop failed: no route"
    recorded = {
        "spec": {"user": "ada", "verb": "list", "resource": "shops", "group": "example.com"},
        "status": {"code": 500, "message": message},
    }
    found = explain_request(recorded, facts_of(definition))
    assert origins(found) == [
        ("CustomResourceDefinition/shops.example.com", ("spec", "conversion")),
        ("Service/guard", ()),
    ]
    assert '"strategy":"None"' in found.remedies[1].command


def test_pods_of_one_template_with_a_host_port_are_not_told_to_delete_their_own_workload():
    metadata = {"ownerReferences": [CONTROLLED]}
    container = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    verdict = condition(
        "PodScheduled",
        "False",
        "Unschedulable",
        "1 node(s) didn't have free ports for the requested pod ports",
    )
    waits = pod_of(
        "db-1", nodeName=None, metadata=metadata, container=container, status={"conditions": [verdict]}
    )
    runs = pod_of("db-0", metadata=metadata, container=container, status={"phase": "Running"})
    found = explained(waits, runs, thing("Namespace", "default", namespace=""))
    assert not any("delete" in each.command for each in found.remedies)
    assert origins(found) == [
        ("StatefulSet/db", ("spec", "template", "spec", "containers", Member("c"), "ports"))
    ]
    other = pod_of("x", container=container, status={"phase": "Running"})
    of_other = explained(waits, other, thing("Namespace", "default", namespace=""))
    assert of_other.remedies[0].command == "kubectl -n default delete pod/x"


def test_autoscalers_of_the_same_pods_are_named():
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    message = "pods by selector app=web are controlled by more than one HPA (e.g. [default/one default/two])"
    status = {"conditions": [condition("ScalingActive", "False", "AmbiguousSelector", message)]}
    one, two = (
        thing("HorizontalPodAutoscaler", name, api_version="autoscaling/v2", spec=spec, status=status)
        for name in ("one", "two")
    )
    found = explain(HPAS, one, facts_of(one, two))
    assert [each.object.name for each in found.related] == ["two"]
    assert [each.command for each in found.remedies] == [
        "kubectl -n default delete horizontalpodautoscaler/two"
    ]


def test_program_that_was_never_started_has_no_log_and_names_its_command():
    end = {
        "exitCode": 128,
        "reason": "StartError",
        "message": 'exec: "ngnix": executable file not found in $PATH',
    }
    status = with_state({"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": end})
    found = explained(pod_of(container={"command": ["ngnix"]}, status=status))
    assert origins(found) == [("Pod/web", ("spec", "containers", Member("c"), "command"))]
    assert not any("logs" in each.command for each in found.remedies)


# --- CronJobs whose Jobs fail or do not end


def of_cron_job(name, created, *conditions):
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "n", "uid": "uid-n", "controller": True}
    metadata = {"ownerReferences": [owner], "creationTimestamp": created}
    spec = {"activeDeadlineSeconds": 5, "template": {"spec": {}}}
    return thing(
        "Job",
        name,
        api_version="batch/v1",
        metadata=metadata,
        spec=spec,
        status={"conditions": [*conditions]},
    )


def test_cron_job_whose_last_job_has_failed_has_its_cause():
    cron_job = thing("CronJob", "n", api_version="batch/v1", spec={"schedule": "* * * * *"})
    failed = of_cron_job("n-2", "2026-01-31T11:58:00Z", condition("Failed", "True", "DeadlineExceeded"))
    complete = condition("Complete", "True")
    before, after = (
        of_cron_job("n-1", "2026-01-31T11:57:00Z", complete),
        of_cron_job("n-3", "2026-01-31T11:59:00Z", complete),
    )
    found = explained(cron_job, before, failed)
    assert found.state == "Explained"
    assert found.cause.startswith(
        "it starts Jobs by its schedule, and n-2, the last one that has ended, has failed: the Job has failed, DeadlineExceeded"
    )
    assert explained(cron_job, before, failed, after).state == "NoProblem"


def test_start_that_forbid_prevents_names_the_policy():
    active = of_cron_job("n-1", "2026-01-31T11:50:00Z")
    spec = {"schedule": "* * * * *", "concurrencyPolicy": "Forbid"}
    cron_job = thing("CronJob", "n", api_version="batch/v1", spec=spec, status={"active": [{"name": "n-1"}]})
    found = explained(cron_job, active, event(cron_job, "JobAlreadyActive", "not started"))
    assert origins(found) == [("CronJob/n", ("spec", "concurrencyPolicy"))]
    assert [each.command.partition(" -p")[0] for each in found.remedies] == [
        "kubectl -n default delete job/n-1",
        "kubectl -n default patch cronjob/n",
    ]


# --- what a kubelet refuses


def test_pods_that_a_kubelet_rejects_one_after_the_other_name_the_field():
    owner = thing("ReplicaSet", "web-1", api_version="apps/v1", spec={"replicas": 1}, status={"replicas": 0})
    reference = {
        "kind": "ReplicaSet",
        "apiVersion": "apps/v1",
        "name": "web-1",
        "uid": "uid-web-1",
        "controller": True,
    }
    status = {"phase": "Failed", "reason": "SysctlForbidden", "message": "forbidden sysctl"}
    pods = [pod_of(name, metadata={"ownerReferences": [reference]}, status=status) for name in ("a", "b")]
    found = explained(owner, *pods)
    assert found.cause == (
        "0 of 1 pods exist, and 2 have failed; b: the pod failed: SysctlForbidden: forbidden sysctl"
    )
    assert origins(found) == [
        ("ReplicaSet/web-1", ("spec", "template", "spec", "securityContext", "sysctls"))
    ]


def test_container_that_may_not_run_as_root_gets_no_user_with_which_its_program_may_fail():
    state = {
        "waiting": {
            "reason": "CreateContainerConfigError",
            "message": "container has runAsNonRoot and image will run as root",
        }
    }
    found = explained(pod_of(metadata={"ownerReferences": [CONTROLLED]}, status=with_state(state)))
    assert [(each.text.partition(",")[0], each.command) for each in found.remedies] == [
        ("Take an image that is made for another user than root", "")
    ]
    assert origins(found)[-1] == ("StatefulSet/db", ("spec", "template", "spec", "securityContext"))


def test_volume_that_cannot_be_mounted_is_named():
    pod = pod_of(status=with_state(CREATING), volumes=[{"name": "v", "hostPath": {"path": "/nope"}}])
    failed = event(pod, "FailedMount", 'MountVolume.SetUp failed for volume "v" : hostPath type check failed')
    assert origins(explained(pod, failed)) == [("Pod/web", ("spec", "volumes", Member("v")))]


def test_scheduling_gate_of_a_template_is_named_there():
    pod = pod_of(
        nodeName=None, metadata={"ownerReferences": [CONTROLLED]}, schedulingGates=[{"name": "example.com/g"}]
    )
    assert origins(explained(pod))[0] == ("StatefulSet/db", ("spec", "template", "spec", "schedulingGates"))


@pytest.mark.parametrize(
    ("finished", "state"), [("2026-01-31T11:59:00Z", "Explained"), ("2026-01-31T10:00:00Z", "NoProblem")]
)
def test_workload_whose_ready_pod_was_started_again_says_why(finished, state):
    end = {"exitCode": 3, "reason": "Error", "finishedAt": finished}
    status = with_state({"running": {}}, restartCount=2, ready=True, lastState={"terminated": end})
    status["conditions"] = [condition("Initialized", "True"), condition("Ready", "True")]
    owner = thing("StatefulSet", "db", api_version="apps/v1", spec={"replicas": 1}, status={"replicas": 1})
    found = explained(owner, pod_of("db-0", metadata={"ownerReferences": [CONTROLLED]}, status=status))
    assert found.state == state
    assert found.cause.startswith("its pod is ready")
    assert ("the container c ended with exit code 3" in found.cause) is (state == "Explained")


# --- what a change is undone by


def undone(before, after, *path):
    state = {"waiting": {"reason": "ImagePullBackOff"}}
    author = {"user": "bob", "verb": "patch"}
    write = {"revision": 7, "type": "MODIFIED", "author": author, "before": before, "after": after}
    path = ("spec", "containers", Member("c"), *path)
    crashed = CRASHED if path[-1] != "image" else with_state(state)
    found = explained(pod_of(status=crashed), writes={("web", path): [write]})
    return [each.command for each in found.remedies if each.text.startswith("Undo")]


def test_change_of_a_large_value_is_undone_as_a_whole():
    image = "registry.example.com/" + "a" * 200
    assert image in undone(image, "b", "image")[0]
    assert undone("a" * 2_000, "b", "image") == []


def test_undoing_removes_what_was_added_to_maps():
    before, after = (
        {"name": "c", "resources": {}},
        {"name": "c", "resources": {"limits": {"cpu": "1"}}, "tty": True},
    )
    (command,) = undone(before, after)
    assert '"resources":{"limits":null}' in command
    assert '"tty":null' in command


def test_change_of_a_list_of_maps_that_a_patch_would_merge_is_not_undone():
    one, other = ({"name": "c", "env": [{"name": name, "value": "1"}]} for name in "AB")
    assert undone(one, other) == []
    assert '"env":null' in undone({"name": "c"}, other)[0]
    assert undone({"name": "c", "args": ["a"]}, {"name": "c", "args": ["b", "c"]})
