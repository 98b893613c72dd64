"""What a manager runs for its flags: controllers with their workers, runnables, components, and the programs with static pods."""

import pytest

from mockube.apimachinery.randomness import SeededRandom
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager import app, catalog
from mockube.controller_manager.catalog import PackControllers
from mockube.controller_manager.config.settings import Config, Controllers, LeaderElection, Simulation
from mockube.kubelet.installation import Installation
from mockube.kubelet.node_pools.pool import plain_nodes

LEADERS = "leader_election_master_status"
NO_PACKS = PackControllers((), ())
PLAIN, LEASE = Simulation(), LeaderElection()
KUBEADM = Simulation(installation=Installation(control_planes=3, files={"cp-1": {}, "cp-2": {}}))
NODES = Simulation(simulate_nodes=plain_nodes(1))


def config_with(*controllers, simulation=PLAIN, leading=LEASE, **flags):
    return Config(
        controllers=Controllers(controllers=controllers or ("*",), **flags),
        simulation=simulation,
        leading=leading,
    )


def controllers_of(config, packs=NO_PACKS):
    return {controller.name: controller for controller in app._controllers(config, packs)}


def runnables_of(config, packs=NO_PACKS):
    return {runnable.name for runnable in app._runnables(config, packs)}


def test_selected_controllers_and_runnables_run():
    config = config_with("deployment", "namespace")
    assert [*controllers_of(config)] == ["deployment-controller"]
    assert runnables_of(config) == {"namespace-controller"}


def test_controllers_and_runnables_of_packs_run_unless_they_are_disabled():
    own = PackControllers((catalog.JOB,), (catalog.NAMESPACE,))
    config = config_with("job-controller", "namespace-controller")
    assert [each.name for each in app._controllers(config, own)] == ["job-controller"] * 2
    assert [each.name for each in app._runnables(config, own)] == ["namespace-controller"] * 2
    assert [*controllers_of(config_with("deployment"), own)] == ["deployment-controller"]
    assert runnables_of(config_with("deployment"), own) == set()


@pytest.mark.parametrize(
    ("simulation", "names"),
    [
        (PLAIN, set()),
        (NODES, {"kube-scheduler", "simulated-nodes", "simulated-storage-class"}),
        (KUBEADM, {"kube-scheduler", "simulated-nodes"}),
    ],
    ids=["no nodes", "nodes", "kubeadm"],
)
def test_simulation_decides_what_runs_by_default(simulation, names):
    found = runnables_of(config_with(simulation=simulation))
    assert found & {"kube-scheduler", "simulated-nodes", "simulated-storage-class"} == names


@pytest.mark.parametrize(("name", "flag"), [*catalog.WORKERS.items()])
def test_flag_sets_the_number_of_workers(name, flag):
    assert controllers_of(config_with(name, **{flag: 17}))[name].workers == 17


def test_controller_without_flag_has_its_own_number_of_workers():
    found = controllers_of(config_with("serviceaccount"))["serviceaccount-controller"]
    assert found.workers == catalog.SERVICE_ACCOUNT.workers


def test_scheduler_is_a_component_where_it_runs():
    assert app.components(config_with()) == ("controller-manager",)
    assert app.components(config_with(simulation=NODES)) == ("controller-manager", "scheduler")
    assert app.components(config_with("*", "-kube-scheduler", simulation=NODES)) == ("controller-manager",)


def test_no_program_is_elected_without_kubeadm():
    assert app.elected_components(config_with(simulation=NODES)) == ()


def test_static_pods_of_kubeadm_are_elected_with_the_leases_of_their_programs():
    leading = LeaderElection(leader_elect_resource_namespace="ns", leader_elect_resource_name="cm")
    scheduler, manager = app.elected_components(config_with(simulation=KUBEADM, leading=leading))
    assert (scheduler.program, scheduler.lease) == ("kube-scheduler", Key("ns", "kube-scheduler"))
    assert (manager.program, manager.lease) == ("kube-controller-manager", Key("ns", "cm"))
    assert (scheduler.releases, manager.releases) == (True, False)
    assert scheduler.nodes == manager.nodes == ["cp-1", "cp-2"]
    assert scheduler.parts == {"kube-scheduler"}
    assert "deployment-controller" in manager.parts


@pytest.mark.parametrize(
    ("simulation", "lease"),
    [(PLAIN, "cm"), (KUBEADM, "mockube-controller-manager")],
    ids=["alone", "kubeadm"],
)
def test_lease_of_the_process_differs_from_that_of_static_pods(simulation, lease):
    leading = LeaderElection(leader_elect_resource_name="cm", leader_elect_resource_namespace="ns")
    config = config_with(simulation=simulation, leading=leading)
    manager = app.Manager(config, clock=SteppedClock(), random=SeededRandom())
    manager._elector(client=None)
    sources = manager.status_sources
    names = {
        sample[0][0]
        for family, found in sources.registry.collect()
        for sample in found
        if family.name == LEADERS
    }
    assert names == {lease}
    assert sources.checks["leaderElection"]() == ""


def test_failed_part_is_a_failed_health_check():
    manager = app.Manager(config_with(), clock=SteppedClock(), random=SeededRandom())
    assert manager.status_sources.checks["ping"]() == ""
    manager.fail("job-controller", ValueError("why"))
    assert manager.status_sources.checks["job-controller"]() == "ValueError: why"
