"""The choice of the server for commands that send requests, and their error messages."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mockube.apimachinery.status import ApiError
from mockube.client.kubeconfig import Access, KubeconfigError, read
from mockube.client.wire import NoResponse
from mockube.clusters.named_cluster import running_cluster
from mockube.etcd.archive.read import BadArchive
from mockube.etcd.errors import KVError
from mockube.failure import Failure

from .parsing import CommandParser
from .shared_flags import add_name


def add_server_flags(parser: CommandParser, *, short: bool = True) -> None:
    add_name(parser, short=short)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the server, instead of a cluster's name",
    )


def server_access(options: argparse.Namespace) -> Access:
    if options.kubeconfig is not None:
        return read(options.kubeconfig)
    folder, _ = running_cluster(options.name, os.environ)
    return read(folder.kubeconfig)


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
