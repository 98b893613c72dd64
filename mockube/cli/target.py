"""The choice of the server for commands that send requests, and their error messages."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from mockube.apimachinery.status import ApiError
from mockube.client.kubeconfig import Access, KubeconfigError, read
from mockube.client.wire import NoResponse
from mockube.clusters import kubeconfig_variable
from mockube.clusters.kubeconfig_variable import VARIABLE, KubeconfigTarget
from mockube.clusters.named_cluster import (
    ClusterFolder,
    ClusterState,
    cluster_folder,
    inspect_cluster,
    name_flag,
    running_cluster,
)
from mockube.etcd.archive.read import BadArchive
from mockube.etcd.errors import KVError
from mockube.failure import Failure, Missing, UsageError
from mockube.launch import NAME

from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_chosen_name

_NAME_VARIABLE: Final = "MOCKUBE_NAME"
_FILE_VARIABLE: Final = "MOCKUBE_KUBECONFIG"


def add_server_flags(parser: CommandParser) -> None:
    add_chosen_name(parser)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the server, instead of a cluster's name",
    )


def server_access(options: argparse.Namespace) -> Access:
    return read(find_target(options).kubeconfig)


class ChosenServer(NamedTuple):
    """The server of a command."""

    kubeconfig: Path
    name: str
    """The cluster of this machine; "" for another server."""


def find_target(options: argparse.Namespace, *, only_own: bool = False) -> ChosenServer:
    """Return the server that the flags choose, or else $KUBECONFIG, or else the cluster without a name.

    Raise Failure if $KUBECONFIG leads to a server that is not mockube's: the user may mean that one or the default, and a
    command may change it. With `only_own`, $KUBECONFIG counts only if it leads to a cluster of this machine.
    """
    name, kubeconfig = _name_and_file(options, os.environ)
    if kubeconfig is not None:
        if not kubeconfig.exists():
            raise Missing(f"{kubeconfig}: No such file or directory")
        return ChosenServer(kubeconfig, "")
    led_to = _read_variable(only_own=only_own) if name is None else None
    if led_to is None:
        folder, _ = running_cluster(name or kubeconfig_variable.gone_cluster(os.environ) or NAME, os.environ)
        return ChosenServer(folder.kubeconfig, folder.name)
    if led_to.folder is not None:
        running_cluster(led_to.folder.name, os.environ)
    _report_doubt(led_to)
    return ChosenServer(led_to.path, led_to.folder.name if led_to.folder is not None else "")


def chosen_name(options: argparse.Namespace) -> str:
    """Return the cluster of this machine that --name chooses, or else $KUBECONFIG, unless that leads to none of them."""
    if options.name is not None:
        return str(options.name)
    led_to = _read_variable(only_own=True)
    if led_to is None or led_to.folder is None:
        return kubeconfig_variable.gone_cluster(os.environ) or NAME
    _report_doubt(led_to)
    return led_to.folder.name


def name_flag_here(folder: ClusterFolder) -> str:
    """Return the flag with which commands in this shell reach a cluster, in front of which there is a space; "" for none."""
    try:
        led_to = kubeconfig_variable.read_target(os.environ)
    except Failure:
        led_to = None
    leads_elsewhere = bool(os.environ.get(VARIABLE)) and (led_to is None or led_to.folder != folder)
    return f" --name={NAME}" if leads_elsewhere and folder.name == NAME else name_flag(folder.name)


def _read_variable(*, only_own: bool) -> KubeconfigTarget | None:
    try:
        led_to = kubeconfig_variable.read_target(os.environ)
        if led_to is not None and led_to.folder is None and not only_own:
            kubeconfig_variable.check_is_mockube(led_to.access)
    except Failure as error:
        if kubeconfig_variable.gone_cluster(os.environ):
            return None
        raise Failure(f"{error}; choose a cluster with --name, or unset {VARIABLE}") from error
    if only_own and led_to is not None and led_to.folder is None:
        print_line(
            f'${VARIABLE} leads to {led_to.access.server}, which is no cluster of this machine: "{NAME}" is used'
        )
        return None
    return led_to


def _report_doubt(led_to: KubeconfigTarget) -> None:
    """Print which cluster is used, if it is not the only one that the user may mean."""
    default = inspect_cluster(cluster_folder(NAME, os.environ))
    if default.folder != led_to.folder and default.state is ClusterState.RUNNING:
        cluster = f'"{led_to.folder.name}"' if led_to.folder is not None else led_to.access.server
        print_line(f"${VARIABLE} leads to {cluster}, which is used; --name={NAME} chooses the other cluster")


def _name_and_file(
    options: argparse.Namespace, environment: Mapping[str, str]
) -> tuple[str | None, Path | None]:
    """Return what --name or --kubeconfig chooses: a flag takes precedence over the variable of the other one."""
    name, kubeconfig = options.name, options.kubeconfig
    if name is None or kubeconfig is None:
        return name, kubeconfig
    if name == environment.get(_NAME_VARIABLE):
        return None, kubeconfig
    if str(kubeconfig) == environment.get(_FILE_VARIABLE):
        return name, None
    raise UsageError("--name and --kubeconfig choose a server each: leave one out")


@contextmanager
def convert_errors() -> Iterator[None]:
    """Convert errors of requests, stores and files into Failure."""
    try:
        yield
    except NoResponse as error:
        raise Failure(f"the server does not respond: {error}") from error
    except ApiError as error:
        raise Failure(error.message) from error
    except (KVError, BadArchive, KubeconfigError) as error:
        raise Failure(str(error)) from error
