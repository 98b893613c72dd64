"""Parse a command line into a `Config`, or exit with code 2 and a message that names the invalid flag."""

from argparse import RawDescriptionHelpFormatter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from msgspec.structs import replace

from mockube.apimachinery.schema import minors
from mockube.component_base.configuration_files import ConfigurationError
from mockube.component_base.flags import Sections
from mockube.component_base.packs import (
    PackError,
    flags_of_packs,
    load_packs,
    own_pack_names,
    selected_packs,
)
from mockube.component_base.release_options import gates_problem
from mockube.container_runtime.simulation_values import PROCESS
from mockube.kubelet.node_pools import deprecated
from mockube.kubelet.node_pools.pool import MAX_SIMULATED_NODES, NodePools, PoolError
from mockube.kubelet.stages.files import load_stages
from mockube.kubelet.stages.query import StageError

from .catalog import NAMES, controllers_of_packs, names_help
from .components import scheduler_settings
from .config.networks import allocates, max_nodes, node_ranges
from .config.selection import ALL_CONTROLLERS, suggested_name, unimplemented_names, unknown_names
from .config.settings import DEPRECATED, SECTIONS, Config, Simulation
from .config.signing import signer_files
from .config.upstream import IGNORED, REMOVED_IN

ENVIRONMENT = "MOCKUBE_CONTROLLER_MANAGER"
JITTER = 1.2
"""The jitter factor of leader election: the renew deadline must exceed a retry period that is stretched by it."""


def parse(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    controller_names: Collection[str],
    scheduler_plugins: Sequence[object] = (),
) -> Config:
    """Return the settings of a command line and its environment; `controller_names` are the names of all controllers."""
    packs = selected_packs(arguments, environment, ENVIRONMENT, default=own_pack_names)
    try:
        sections = _sections(packs)
    except PackError as error:
        _sections(()).parser.error(f"--packs: {error}")
    records, ignored = sections.parse(arguments, environment, ENVIRONMENT)
    options = {pack: records.pop(_section_of(pack)) for pack in packs if _section_of(pack) in records}
    nodes = _replace_deprecated(sections, records["simulation"].simulate_nodes, records.pop(DEPRECATED))
    records["simulation"] = replace(records["simulation"], simulate_nodes=nodes)
    if records["simulation"].simulated_images is not None:
        deprecated.report(["--simulated-images"], "--images")
    if records["simulation"].simulate_unknown_programs:
        deprecated.report(["--simulate-unknown-programs"], "--unknown-programs")
    controllers = records.pop("controllers")
    if controllers.packs is not None:
        controllers = replace(controllers, packs=tuple(dict.fromkeys(controllers.packs)))
    config = Config(**records, controllers=controllers, packs=options, ignored=tuple(ignored))
    config = replace(config, scheduler_plugins=tuple(scheduler_plugins))
    if config.server.kubeconfig is None and not config.server.master and environment.get("KUBECONFIG"):
        server = replace(config.server, kubeconfig=Path(environment["KUBECONFIG"]))
        config = replace(config, server=server)
    features = config.features
    problem = (
        _version_problem(features.version, features.minor)
        or _release_problem_of_any(config, controller_names)
        or _problem(config)
    )
    if problem:
        sections.parser.error(problem)
    return config


def _replace_deprecated(
    sections: Sections, nodes: NodePools, settings: deprecated.CommonSettings
) -> NodePools:
    """Return the simulated nodes with what deprecated flags set, and report these flags."""
    try:
        pools = deprecated.pool_of_settings(nodes, settings)
    except PoolError as error:
        sections.parser.error(str(error))
    deprecated.report(deprecated.set_flags(settings), f"--simulate-nodes={pools.text}")
    return pools


@cache
def _sections(packs: tuple[str, ...]) -> Sections:
    """Return the parser with the flags of packs. It takes longer to put together than a command line to parse."""
    flags = flags_of_packs(SECTIONS.values(), packs, other_flags=("help", *IGNORED))
    return Sections(
        {**SECTIONS, **{_section_of(pack): record for pack, record in flags.items()}},
        ignored=IGNORED,
        prog="python -m mockube.controller_manager",
        usage="python -m mockube.controller_manager [FLAG ...]",
        description="mockube's controller manager.",
        epilog=f"{names_help(packs)}\nEvery flag can be set in the environment as well: {ENVIRONMENT}_MASTER is --master.",
        formatter_class=RawDescriptionHelpFormatter,
    )


def _section_of(pack: str) -> str:
    return f"pack {pack}"


def _version_problem(flag: str, minor: str) -> str:
    """Return an error message about `--version`, or print the version and exit if the flag asks for that."""
    if flag == "false":
        return ""
    from mockube.component_base.version import print_version, version_problem  # noqa: PLC0415 - rarely needed

    print_version(flag, minor)
    return version_problem(flag, minor)


def release_problem(config: Config, controller_names: Collection[str] = NAMES) -> str:
    """Return what is wrong with flags for the minor release and the packs of the settings; "" if nothing is."""
    minor = config.features.minor
    try:
        names = {*controller_names, *_names_of_packs(config)}
    except PackError as error:
        return f"--packs: {error}"
    return (
        gates_problem(config.features.feature_gates, minor)
        or _removed_problem(config.ignored, minor)
        or names_problem(config.controllers.controllers, names, minor)
        or _images_of_packs_problem(config.controllers.packs or ())
        or _scheduler_problem(config)
    )


def _names_of_packs(config: Config) -> Collection[str]:
    """Return the controllers of the packs; of all of mockube's own, if `--controllers` may name those of the server."""
    packs = config.controllers.packs
    if packs is None:
        packs = () if config.controllers.controllers == (ALL_CONTROLLERS,) else own_pack_names()
    return controllers_of_packs(packs, config.packs).names


def _release_problem_of_any(config: Config, controller_names: Collection[str]) -> str:
    """Return what is wrong with flags for the newest minor; "" if they fit a minor that the server may have."""
    problem = release_problem(config, controller_names)
    if not problem or not config.features.follows_server:
        return problem
    for minor in minors.OLDER:
        older = replace(config, features=replace(config.features, kubernetes_version=minor))
        if not release_problem(older, controller_names):
            return ""
    return problem


def _problem(config: Config) -> str:
    """Return an error message about flags that are valid on their own but not together; "" if there is none."""
    leading, serving = config.leading, config.serving
    if problem := _simulation_problem(config.simulation) or _files_and_ranges_problem(config):
        return problem
    if config.server.kubeconfig is None and not config.server.master:
        return "no API server: set --kubeconfig or --master"
    if leading.leader_elect_lease_duration <= leading.leader_elect_renew_deadline:
        return "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline"
    if leading.leader_elect_renew_deadline <= JITTER * leading.leader_elect_retry_period:
        return f"--leader-elect-renew-deadline must be longer than {JITTER} times --leader-elect-retry-period"
    if (serving.tls_cert_file is None) != (serving.tls_private_key_file is None):
        return "--tls-cert-file and --tls-private-key-file must be set together"
    if serving.client_ca_file is None and not ip_address(serving.bind_address).is_loopback:
        return "--bind-address: addresses other than loopback require --client-ca-file"
    return ""


def _removed_problem(ignored: Collection[str], minor: str) -> str:
    removed = [
        name for name in ignored if name in REMOVED_IN and not minors.is_before(minor, REMOVED_IN[name])
    ]
    return f"unrecognized arguments: --{removed[0]}" if removed else ""


def names_problem(
    selection: Sequence[str], controller_names: Collection[str], minor: str, help_flag: str = "--help"
) -> str:
    """Return what is wrong with the names in `--controllers`, and the nearest ones; `help_flag` lists them."""
    unknown = [
        f'"{name}" is not in the list of known controllers{_instead_of(name, controller_names, help_flag)}'
        for name in unknown_names(selection, controller_names, minor)
    ]
    unimplemented = [
        f'"{name}" is not implemented by mockube; remove it' for name in unimplemented_names(selection)
    ]
    return "; ".join(f"--controllers: {problem}" for problem in (*unknown, *unimplemented))


def _instead_of(name: str, controller_names: Collection[str], help_flag: str) -> str:
    suggestion = suggested_name(name, controller_names)
    return f': did you mean "{suggestion}"?' if suggestion else f", which {help_flag} lists"


def _simulation_problem(simulation: Simulation) -> str:
    try:
        load_stages(simulation.stages)
    except StageError as error:
        return f"--stages: {error}"
    return _image_table_problem(simulation) or _runtime_problem(simulation)


def _scheduler_problem(config: Config) -> str:
    try:
        scheduler_settings(config)
    except ConfigurationError as error:
        subject = "scheduler_plugins" if config.controllers.scheduler_config is None else "--scheduler-config"
        return f"{subject}: {error}"
    return ""


def _image_table_problem(simulation: Simulation) -> str:
    files = {"--images": simulation.images, "--simulated-images": simulation.simulated_images}
    if not any(files.values()):
        return ""
    from mockube.container_runtime.images.table import ImageTableError, load_table  # noqa: PLC0415 - rarely needed

    runs_processes = simulation.container_runtime == PROCESS
    for flag, path in files.items():
        try:
            if path is not None:
                load_table(path, has_processes=flag == "--images" and runs_processes)
        except ImageTableError as error:
            return f"{flag}: {error}"
    return ""


def _images_of_packs_problem(packs: Sequence[str]) -> str:
    images = {name: pack.images for name, pack in load_packs(packs).items() if pack.images}
    if not images:
        return ""
    from mockube.container_runtime.images.table import ImageTableError, table_of  # noqa: PLC0415 - rarely needed

    for name, tree in images.items():
        try:
            table_of(tree)
        except ImageTableError as error:
            return f'--packs: pack "{name}": images: {error}'
    return ""


def _runtime_problem(simulation: Simulation) -> str:
    if simulation.container_runtime != PROCESS:
        return ""
    if simulation.images is None:
        return f"--container-runtime={PROCESS} needs --images"
    if simulation.stages:
        return f"--container-runtime={PROCESS} cannot be combined with --stages"
    from mockube.container_runtime.process.images import ImageMapError, load_images  # noqa: PLC0415 - rarely needed

    try:
        load_images(simulation.images)
    except ImageMapError as error:
        return f"--images: {error}"
    return ""


def _wider_network(limit: int) -> str:
    """Return what to do if pod CIDRs, and not the number of nodes that are possible, limit the nodes."""
    if limit == MAX_SIMULATED_NODES:
        return ""
    return "; with a larger --cluster-cidr, or a larger --node-cidr-mask-size, there are more pod CIDRs"


def _files_and_ranges_problem(config: Config) -> str:
    try:
        if allocates(config):
            node_ranges(config)
        if config.simulation.node_count > (limit := max_nodes(config)):
            return f"--simulate-nodes: at most {limit} nodes can have addresses{_wider_network(limit)}"
        signer_files(config.signing)
    except ValueError as error:
        return str(error)
    return ""
