"""The feature gates of a command line: which are refused, which have an effect, and the APIs behind them."""

import pytest

from mockube.apiserver.config.command_line import parse


def read(*arguments):
    return parse(arguments, {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ["--feature-gates=JobManagedBy=false,DynamicResourceAllocation=false"],
            "[cannot set feature gate JobManagedBy to false, feature is locked to true, "
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true]",
            id="locked gates",
        ),
        pytest.param(
            ["--feature-gates=other:WatchList=true"], "component not registered: other", id="other component"
        ),
        pytest.param(
            ["--feature-gates=ClusterTrustBundle=false"],
            "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]",
            id="a gate that another one needs",
        ),
        pytest.param(
            ["--feature-gates=CompositePodGroup=true,TopologyAwareWorkloadScheduling=true"],
            "[CompositePodGroup is enabled, but depends on features that are disabled: [GenericWorkload], "
            "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]]",
            id="gates without the gate that they need",
        ),
        pytest.param(
            ["--feature-gates=AllAlpha=true"],
            "WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]",
            id="alpha gates that need a beta gate",
        ),
        pytest.param(
            ["--feature-gates=AllBeta=false,ClusterTrustBundleProjection=true", "--kubernetes-version=1.36"],
            "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]",
            id="a gate that needs one of a stage that is off",
        ),
    ],
)
def test_combination_of_gates_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit):
        read(*arguments)
    assert message in capsys.readouterr().err


def test_gate_of_stage_sets_gates_without_own_setting():
    alpha, beta = (
        read(f"--feature-gates={settings}")
        for settings in (
            "AllAlpha=true,GenericWorkload=true,H2CContainerProbe=false",
            "WatchList=true,AllBeta=false",
        )
    )
    names = "EvictionRequestAPI", "H2CContainerProbe", "JobManagedBy", "AllAlpha"
    assert [alpha.features.gates.is_on(name) for name in names] == [True, False, True, True]
    assert [beta.features.gates.is_on(name) for name in ("ComponentStatusz", "WatchList")] == [False, True]
    assert "--feature-gates=WorkloadWithJob=true" in alpha.ignored_flags()
    assert "--feature-gates=APIServerIdentity=false" in beta.ignored_flags()
    assert not [flag for flag in alpha.ignored_flags() if "AllAlpha" in flag or "EvictionRequestAPI" in flag]


@pytest.mark.parametrize("gate", ["AllAlpha", "AllBeta"])
@pytest.mark.parametrize("value", ["true", "false"])
def test_gate_of_stage_sets_itself_only_by_own_setting(gate, value):
    other = {"AllAlpha": "AllBeta", "AllBeta": "AllAlpha"}[gate]
    gates = read(f"--feature-gates={gate}={value},GenericWorkload=true").features.gates
    assert [gates.is_on(name) for name in (gate, other)] == [value == "true", False]


@pytest.mark.parametrize("minor", ["1.34", "1.33"])
def test_gates_need_no_other_gates_before_1_35(minor):
    config = read(
        "--feature-gates=PodLevelResources=false,DRAAdminAccess=true", f"--kubernetes-version={minor}"
    )
    assert not config.features.gates.is_on("PodLevelResources")


@pytest.mark.parametrize(
    ("minor", "gate", "says"),
    [
        ("1.31", "JobSuccessPolicy=false", ""),
        ("1.36", "JobSuccessPolicy=false", "feature is locked to true"),
        ("1.29", "JobSuccessPolicy=false", "unrecognized feature gate: JobSuccessPolicy"),
        ("1.29", "SecurityContextDeny=true", ""),
        ("1.36", "SecurityContextDeny=true", "unrecognized feature gate: SecurityContextDeny"),
        ("1.30", "HonorPVReclaimPolicy=true", ""),
    ],
)
def test_feature_gates_are_those_of_minor(minor, gate, says, capsys):
    flags = [f"--kubernetes-version={minor}", f"--feature-gates={gate}"]
    if not says:
        assert read(*flags).ignored_flags() == (f"--feature-gates={gate}",)
        return
    with pytest.raises(SystemExit):
        read(*flags)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gate", "version", "name"),
    [
        ("GenericWorkload", "scheduling.k8s.io/v1beta1", "workloads"),
        ("GenericWorkload", "scheduling.k8s.io/v1alpha3", "workloads"),
        (
            "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup",
            "scheduling.k8s.io/v1alpha3",
            "compositepodgroups",
        ),
        ("EvictionRequestAPI", "lifecycle.k8s.io/v1alpha1", "evictions"),
    ],
)
def test_apis_behind_gate_are_refused_with_it_and_not_served_without_it(gate, version, name, capsys):
    read(f"--runtime-config={version}=true")
    with pytest.raises(SystemExit):
        read(f"--runtime-config={version}=true", f"--feature-gates={gate}=true")
    message = f"error: --runtime-config: {version}/{name} is not supported\n"
    assert capsys.readouterr().err.endswith(message)
    config = read("--runtime-config=api/all=true", f"--feature-gates={gate}=true")
    assert f"--runtime-config={version}/{name}=true" in config.ignored_flags()
