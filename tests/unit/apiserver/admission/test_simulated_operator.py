"""The warning to a client that creates a custom object whose operator is simulated."""

import pytest

from mockube.apiserver.registry.watch_stream import watch
from tests.support.server.custom_kinds import HOOKS_V1, define_hooks, hook
from tests.support.server.memory_api import CORE
from tests.support.server.simulated_operator import ANY_RULE, HOOKS_RULE, OPERATOR, run_operator

WARNING = (
    f"nothing reconciles this Hook: its operator, {OPERATOR}, is simulated and does nothing, and no other program watches "
    "hooks.versions.test; run the operator as a process, see docs/guides/operators.md"
)


@pytest.mark.kills("admission without WarnOfSimulatedOperator")
@pytest.mark.parametrize("rule", [HOOKS_RULE, ANY_RULE], ids=["rule of its group", "rule of all groups"])
async def test_creation_of_object_with_simulated_operator_has_a_warning(api, rule):
    await define_hooks(api, by_webhook=False)
    await run_operator(api, rule)
    answer = await api.create(HOOKS_V1, hook(size=5))
    assert (answer.code, answer.warnings) == (201, [WARNING])


async def test_apply_that_creates_has_a_warning_and_later_changes_and_dry_runs_have_none(api):
    await define_hooks(api, by_webhook=False)
    await run_operator(api)
    assert not (await api.create(HOOKS_V1, hook(), dryRun="All")).warnings
    assert (await api.apply(f"{HOOKS_V1}/a", hook(size=5))).warnings == [WARNING]
    assert not (await api.apply(f"{HOOKS_V1}/a", hook(size=6))).warnings
    assert not (await api.create(f"{CORE}/configmaps", {"metadata": {"name": "c"}})).warnings


@pytest.mark.parametrize(
    "operator",
    [
        pytest.param({"rule": {**HOOKS_RULE, "apiGroups": ["other.test"]}}, id="rule of another group"),
        pytest.param({"rule": {**HOOKS_RULE, "resources": ["others"]}}, id="rule of another resource"),
        pytest.param({"rule": {**HOOKS_RULE, "verbs": ["get", "list"]}}, id="rule without watch"),
        pytest.param({"rule": {**ANY_RULE, "verbs": ["get", "list", "watch"]}}, id="reader of everything"),
        pytest.param({"rule": {**HOOKS_RULE, "resourceNames": ["x"]}}, id="rule of one object"),
        pytest.param({"namespace": "operators"}, id="rule of another namespace"),
        pytest.param({"simulated": False}, id="pod on a node that is not simulated"),
        pytest.param({"account": "other"}, id="pod of another account"),
        pytest.param({"phase": "Pending"}, id="pod that does not run"),
    ],
)
async def test_creation_without_simulated_operator_has_no_warning(api, operator):
    await define_hooks(api, by_webhook=False)
    await run_operator(api, **operator)
    assert not (await api.create(HOOKS_V1, hook())).warnings


@pytest.mark.parametrize(
    ("agent", "path", "count"),
    [
        pytest.param("manager/v0.0.0 (linux/amd64) kubernetes", HOOKS_V1, 0, id="an operator"),
        pytest.param(
            "manager/v0.0.0", HOOKS_V1.replace("default", "kube-system"), 1, id="of another namespace"
        ),
        pytest.param("manager/v0.0.0", f"{HOOKS_V1}/x", 1, id="of another object"),
        pytest.param("kubectl/v1.37.2 (linux/amd64)", HOOKS_V1, 1, id="kubectl"),
        pytest.param("kube-controller-manager", HOOKS_V1, 1, id="the garbage collector"),
    ],
)
async def test_watch_of_program_that_may_reconcile_prevents_the_warning(api, agent, path, count):
    await define_hooks(api, by_webhook=False)
    await run_operator(api)
    context = api.context("GET", path)
    context.user_agent = agent
    stream, _ = await watch(api.registry, context)
    assert len((await api.create(HOOKS_V1, hook())).warnings) == count
    stream.close()
    assert (await api.create(HOOKS_V1, hook(name="b"))).warnings == [WARNING]


async def test_warning_ends_with_the_pod_and_with_the_rights_of_the_operator(api):
    await define_hooks(api, by_webhook=False)
    await run_operator(api)
    names = iter("abcd")

    async def warnings():
        await api.settle()
        return (await api.create(HOOKS_V1, hook(name=next(names)))).warnings

    assert await warnings() == [WARNING]
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hooks"
    stored = await api.stored(binding)
    await api.delete(binding)
    assert await warnings() == []
    await api.create(binding.removesuffix("/hooks"), stored)
    assert await warnings() == [WARNING]
    await api.delete("/api/v1/namespaces/operators/pods/hooks-5d4f-x", gracePeriodSeconds="0")
    assert await warnings() == []
