"""Admission of pods: what each plugin changes in a pod that a user creates, and what it refuses."""

import pytest

from tests.support.server.memory_api import CORE, PODS, running_api

NAMESPACES, NODES = "/api/v1/namespaces", "/api/v1/nodes"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
RUNTIMES = "/apis/node.k8s.io/v1/runtimeclasses"


def pod(name="p", *, annotations=None, **spec):
    containers = [{"name": "c", "image": "x"}]
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def with_resources(requests=None, limits=None, **spec):
    resources = {"requests": requests or {}, "limits": limits or {}}
    return pod(containers=[{"name": "c", "image": "x", "resources": resources}], **spec)


async def created_spec(api, tree):
    """Create a pod, and return the spec that is stored."""
    answer = await api.create(PODS, tree)
    assert answer.code == 201, answer.message
    return (await api.stored(f"{PODS}/{tree['metadata']['name']}"))["spec"]


async def refusal(api, tree):
    """Return why a pod is forbidden; nothing of it is stored."""
    answer = await api.create(PODS, tree)
    assert (answer.code, await api.stored(f"{PODS}/p")) == (403, None), answer.message
    return answer.message.partition(" is forbidden: ")[2]


# --- plugins that are on by default


@pytest.mark.kills("admission without LimitRanger")
async def test_limit_range_sets_default_requests_and_refuses_more_than_its_maximum(api):
    limit = {
        "type": "Container",
        "default": {"cpu": "2"},
        "defaultRequest": {"cpu": "1"},
        "max": {"cpu": "3"},
    }
    await api.create_all((f"{CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [limit]}}))
    problem = "maximum cpu usage per Container is 3, but limit is 4"
    assert await refusal(api, with_resources(limits={"cpu": "4"})) == problem
    (container,) = (await created_spec(api, pod()))["containers"]
    assert container["resources"] == {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}


@pytest.mark.kills("admission without ServiceAccount")
async def test_pod_gets_default_account_and_its_token(api):
    spec = await created_spec(api, pod())
    assert spec["serviceAccountName"] == "default"
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"


async def test_pod_of_missing_account_is_refused(api):
    problem = 'error looking up service account default/none: serviceaccount "none" not found'
    assert await refusal(api, pod(serviceAccountName="none")) == problem


@pytest.mark.kills("admission without Priority")
async def test_pod_has_priority_of_its_class(api):
    assert await refusal(api, pod(priorityClassName="none")) == "no PriorityClass with name none was found"
    await api.create_all((CLASSES, {"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"}))
    spec = await created_spec(api, pod(priorityClassName="high"))
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "Never")


@pytest.mark.kills("admission without DefaultTolerationSeconds")
async def test_pod_tolerates_nodes_that_are_not_ready_for_five_minutes(api):
    tolerations = (await created_spec(api, pod()))["tolerations"]
    assert [(each["key"], each["effect"], each["tolerationSeconds"]) for each in tolerations] == [
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    ]


@pytest.mark.kills("admission without RuntimeClass")
async def test_pod_has_overhead_of_its_runtime_class(api):
    problem = 'pod rejected: RuntimeClass "r" not found'
    assert await refusal(api, pod(runtimeClassName="r")) == problem
    runtime = {"metadata": {"name": "r"}, "handler": "h", "overhead": {"podFixed": {"cpu": "250m"}}}
    await api.create_all((RUNTIMES, runtime))
    assert (await created_spec(api, pod(runtimeClassName="r")))["overhead"] == {"cpu": "250m"}


@pytest.mark.kills("admission without PodSecurity")
async def test_privileged_pod_is_refused_where_restricted_ones_are_enforced(api):
    await api.patch(CORE, {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}})
    await api.settle()
    container = {"name": "c", "image": "x", "securityContext": {"privileged": True}}
    assert await refusal(api, pod(containers=[container])) == (
        'violates PodSecurity "baseline:latest": privileged (container "c" must not set '
        "securityContext.privileged=true)"
    )


@pytest.mark.kills("admission without ResourceQuota")
async def test_pod_beyond_quota_is_refused(api):
    spec = {"hard": {"requests.cpu": "1"}}
    await api.create_all((f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": spec}))
    status = {"status": {"hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "0"}}}
    await api.patch(f"{CORE}/resourcequotas/q/status", status)
    await api.settle()
    assert await refusal(api, with_resources(requests={"cpu": "2"})) == (
        "exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1"
    )
    await created_spec(api, with_resources(requests={"cpu": "1"}))
    quota = await api.stored(f"{CORE}/resourcequotas/q")
    assert quota["status"]["used"] == {"requests.cpu": "1"}


@pytest.mark.kills("admission without PodTopologyLabels")
async def test_pod_gets_topology_labels_of_its_node(api):
    labels = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1", "other": "x"}
    await api.create_all((NODES, {"metadata": {"name": "n", "labels": labels}}))
    await created_spec(api, pod(nodeName="n"))
    del labels["other"]
    assert (await api.stored(f"{PODS}/p"))["metadata"]["labels"] == labels


@pytest.mark.kills("admission without TaintNodesByCondition")
async def test_new_node_has_taint_until_it_is_ready(api):
    await api.create(NODES, {"metadata": {"name": "n"}})
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    assert (await api.stored(f"{NODES}/n"))["spec"]["taints"] == [taint]


async def resized(api, tree, patch, **status):
    """Create a pod on a node with a status, and return the answer to a resize."""
    await api.create_all((NODES, {"metadata": {"name": "n"}}))
    await api.patch(f"{NODES}/n/status", {"status": status})
    await api.settle()
    await created_spec(api, tree)
    return await api.patch(f"{PODS}/p/resize", {"spec": patch}, kind="strategic-merge-patch+json")


@pytest.mark.kills("admission without PodResizeValidator")
async def test_resize_that_does_not_fit_node_is_refused(api):
    tree = with_resources(requests={"cpu": "1"}, nodeName="n")
    patch = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
    answer = await resized(api, tree, patch, allocatable={"cpu": "2", "memory": "1Gi"})
    assert answer.refusal == (
        403,
        (
            'pods "p" is forbidden: node didn\'t have enough allocatable resources: '
            "cpu, requested: 3000, allocatable: 2000"
        ),
    )
    stored = (await api.stored(f"{PODS}/p"))["spec"]["containers"][0]
    assert stored["resources"]["requests"] == {"cpu": "1"}


@pytest.mark.kills("admission without NodeDeclaredFeatureValidator")
async def test_resize_of_whole_pod_needs_feature_that_its_node_declares(api):
    one, two = ({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}} for cpu in "12")
    tree = with_resources(**one, nodeName="n", resources=one)
    answer = await resized(api, tree, {"resources": two}, allocatable={"cpu": "9", "memory": "1Gi"})
    assert answer.refusal == (
        403,
        (
            'pods "p" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling '
            'which are not available on node "n"'
        ),
    )


# --- plugins that a flag enables


def enabled(name, *flags, is_empty=False):
    return running_api(f"--enable-admission-plugins={name}", *flags, is_empty=is_empty)


@pytest.fixture
def configured(tmp_path):
    """Return a function that enables a plugin with a configuration."""

    def with_configuration(name, text):
        (tmp_path / "plugin.yaml").write_text(text)
        path = tmp_path / "admission.yaml"
        path.write_text(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
            f"plugins: [{{name: {name}, path: plugin.yaml}}]\n"
        )
        return enabled(name, f"--admission-control-config-file={path}")

    return with_configuration


@pytest.mark.kills("admission without AlwaysDeny")
async def test_always_deny_refuses_every_write():
    async with enabled("AlwaysDeny", is_empty=True) as api:
        answer = await api.create(NAMESPACES, {"metadata": {"name": "default"}})
        problem = 'namespaces "default" is forbidden: admission control is denying all modifications'
        assert answer.refusal == (403, problem)
        assert await api.stored(CORE) is None


@pytest.mark.kills("admission without AlwaysPullImages")
async def test_images_are_always_pulled():
    async with enabled("AlwaysPullImages") as api:
        container = {"name": "c", "image": "x", "imagePullPolicy": "Never"}
        spec = await created_spec(api, pod(containers=[container]))
    assert spec["containers"][0]["imagePullPolicy"] == "Always"


@pytest.mark.kills("admission without LimitPodHardAntiAffinityTopology")
async def test_required_anti_affinity_is_allowed_for_hosts_only():
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    async with enabled("LimitPodHardAntiAffinityTopology") as api:
        assert await refusal(api, pod(affinity=affinity)) == (
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey topology.kubernetes.io/zone "
            "but only key kubernetes.io/hostname is allowed"
        )


@pytest.mark.kills("admission without PodNodeSelector")
async def test_pod_gets_node_selector_of_its_namespace(configured):
    selectors = "podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: zone=a}"
    async with configured("PodNodeSelector", selectors) as api:
        assert await refusal(api, pod(nodeSelector={"zone": "b"})) == (
            "pod node label selector conflicts with its namespace node label selector"
        )
        assert (await created_spec(api, pod()))["nodeSelector"] == {"zone": "a"}


@pytest.mark.kills("admission without PodTolerationRestriction")
async def test_pod_gets_default_tolerations_of_its_namespace():
    annotations = {
        "scheduler.alpha.kubernetes.io/defaultTolerations": '[{"key": "d", "operator": "Exists"}]',
    }
    async with enabled("PodTolerationRestriction") as api:
        await api.patch(CORE, {"metadata": {"annotations": annotations}})
        await api.settle()
        assert {"key": "d", "operator": "Exists"} in (await created_spec(api, pod()))["tolerations"]


@pytest.mark.kills("admission without ExtendedResourceToleration")
async def test_pod_that_requests_device_tolerates_its_nodes():
    async with enabled("ExtendedResourceToleration") as api:
        device = {"example.com/gpu": "1"}
        spec = await created_spec(api, with_resources(requests=device, limits=device))
    assert {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]


@pytest.mark.kills("admission without ImagePolicyWebhook")
async def test_pod_whose_image_webhook_refuses_is_refused(configured, tmp_path):
    (tmp_path / "kubeconfig").write_text(
        "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://images.test/review}}]\n"
        "users: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
    )
    settings = f"imagePolicy: {{kubeConfigFile: {tmp_path / 'kubeconfig'}, allowTTL: 50, denyTTL: 50, retryBackoff: 500}}"
    async with configured("ImagePolicyWebhook", settings) as api:
        api.servers.review_images = lambda spec: {
            "allowed": spec["containers"][0]["image"] != "bad",
            "reason": "not signed",
        }
        problem = "image policy webhook backend denied one or more images: not signed"
        assert await refusal(api, pod(containers=[{"name": "c", "image": "bad"}])) == problem
        assert (await created_spec(api, pod()))["containers"][0]["image"] == "x"


@pytest.mark.kills("admission without EventRateLimit")
async def test_events_beyond_rate_are_refused(configured):
    limits = (
        "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"
        "limits: [{type: Namespace, qps: 1, burst: 1, cacheSize: 10}]\n"
    )
    event = {"involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "type": "Normal"}
    async with configured("EventRateLimit", limits) as api:
        codes = []
        for name in "ab":
            answer = await api.create(f"{CORE}/events", event | {"metadata": {"name": name}})
            codes.append(answer.code)
        assert (codes, await api.stored(f"{CORE}/events/b")) == ([201, 429], None)
        assert answer.message == "Too many requests: limit reached on type Namespace for key default"
        api.registry.clock.advance(1)
        assert (await api.create(f"{CORE}/events", event | {"metadata": {"name": "c"}})).code == 201
