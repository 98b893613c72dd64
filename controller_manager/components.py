"""The scheduler and the simulated nodes as parts of this manager, made from its flags."""

from typing import Final

from mockube.client.component import Runner
from mockube.client.kubeconfig import access_of
from mockube.component_base.packs import load_packs
from mockube.container_runtime.simulation_values import FAIL, PROCESS
from mockube.kubelet.api_server_access import ApiServerAccess
from mockube.kubelet.kubelets import SimulatedKubelets
from mockube.kubelet.network_view import InformerView
from mockube.kubelet.nodes import SimulatedNodes
from mockube.kubelet.pods import SimulatedPods
from mockube.kubelet.runtimes import containers_of_nodes
from mockube.kubelet.settings import KubeletContext, KubeletSettings
from mockube.publisher.disabled import DisabledPublisher
from mockube.publisher.settings import PublisherContext, PublisherSettings
from mockube.scheduler.profiles import SchedulerSettings
from mockube.scheduler.scheduler import Scheduler
from mockube.scheduler.settings import settings_for

from .config.networks import IPAM, allocates, max_nodes
from .config.settings import Config
from .control.runnable import Context, Runnable

_ATTACH_DETACH: Final = "persistentvolume-attach-detach-controller"
_ROOT_CA_PUBLISHER: Final = "root-ca-certificate-publisher-controller"


def scheduler_settings(options: Config) -> SchedulerSettings:
    """Return what the flags configure; raise ConfigurationError if it is invalid."""
    return settings_for(
        options.controllers.scheduler_config, options.scheduler_plugins, options.features.gates
    )


def _scheduler(context: Context) -> Scheduler:
    return Scheduler(context, scheduler_settings(context.options))


def _kubelet_settings(context: Context) -> KubeletSettings:
    """Return what the flags say of simulated nodes, and which controllers of this manager work for them."""
    options, names = context.options, context.names
    simulation = options.simulation
    packs = load_packs(options.controllers.packs or ()).values()
    return KubeletSettings(
        nodes=simulation.simulate_nodes,
        max_nodes=max_nodes(options),
        stages=simulation.stages,
        details=simulation.simulate_kubelet_details,
        address=simulation.kubelet_address,
        port=simulation.kubelet_port,
        local_ports=options.local_ports,
        allow_host_access=simulation.allow_host_access,
        process_images=simulation.images if simulation.container_runtime == PROCESS else None,
        pod_network=simulation.pod_network,
        pod_logs=simulation.pod_logs_dir,
        unknown_programs=simulation.simulate_unknown_programs or simulation.unknown_programs,
        fails_unknown_images=simulation.unknown_images == FAIL,
        image_files=[path for path in (simulation.simulated_images, simulation.images) if path is not None],
        pack_images=[pack.images for pack in packs if pack.images],
        server=access_of(options.server).server,
        grace_period=options.controllers.node_monitor_grace_period,
        waits_for_pod_cidrs=allocates(options) and IPAM in names,
        has_root_ca=_ROOT_CA_PUBLISHER in names,
        attaches_volumes=_ATTACH_DETACH in names,
        installation=simulation.installation,
        cluster_dns=simulation.cluster_dns,
        balancers=context.options.networks.load_balancer_cidr,
    )


def _kubelet_context(context: Context) -> KubeletContext:
    return KubeletContext(
        client=context.client,
        informers=context.informers,
        clock=context.clock,
        random=context.random,
        recorder=context.recorder,
        metrics=context.metrics,
        shared=context.shared,
        settings=_kubelet_settings(context),
    )


def _simulated_nodes(context: Context) -> SimulatedNodes:
    return SimulatedNodes(_kubelet_context(context))


def _simulated_pods(context: Context) -> SimulatedPods:
    return SimulatedPods(_kubelet_context(context))


def _simulated_kubelets(context: Context) -> SimulatedKubelets:
    return SimulatedKubelets(_kubelet_context(context))


def _service_publisher(context: Context) -> Runner:
    publishing, networks = context.options.publishing, context.options.networks
    containers = containers_of_nodes(_kubelet_context(context))
    publisher_context = PublisherContext(
        client=context.client,
        informers=context.informers,
        clock=context.clock,
        random=context.random,
        recorder=context.recorder,
        metrics=context.metrics,
        shared=context.shared,
        settings=PublisherSettings(
            is_enabled=publishing.publish,
            address=publishing.publish_address,
            balancers=networks.load_balancer_cidr,
            http_port=publishing.publish_http_port,
            https_port=publishing.publish_https_port,
        ),
        view=InformerView(context.informers, containers.image_table),
        port_behavior=containers.predictions.port_behavior,
        find_listener=containers.runtime.listener,
        admin_policy=ApiServerAccess(context.client).admin_policy,
    )
    if not publishing.publish:
        return DisabledPublisher(publisher_context)
    from mockube.publisher.publisher import Publisher  # noqa: PLC0415 - most managers publish nothing

    return Publisher(publisher_context)


# None has a service account: upstream's scheduler and kubelets are users, and no role has bindings for accounts of their names.
KUBE_SCHEDULER: Final = Runnable(name="kube-scheduler", service_account="", build=_scheduler)
SIMULATED_NODES: Final = Runnable(name="simulated-nodes", service_account="", build=_simulated_nodes)
SIMULATED_PODS: Final = Runnable(name="simulated-pods", service_account="", build=_simulated_pods)
SIMULATED_KUBELETS: Final = Runnable(name="simulated-kubelets", service_account="", build=_simulated_kubelets)
SERVICE_PUBLISHER: Final = Runnable(name="service-publisher", service_account="", build=_service_publisher)
