"""The server of commands that use one, and the messages of connection errors."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mockube.apimachinery.status import ApiError
from mockube.cli.parsing import Parser
from mockube.cli.shared_flags import add_name
from mockube.clusters.named_cluster import running
from mockube.controller_manager.client.kubeconfig import Access, KubeconfigError, read
from mockube.controller_manager.client.wire import NoAnswer
from mockube.etcd.archive.read import BadArchive
from mockube.etcd.errors import KVError
from mockube.failure import Failure


def add_server(parser: Parser) -> None:
    add_name(parser)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the server, instead of a cluster's name",
    )


def server_of(options: argparse.Namespace) -> Access:
    if options.kubeconfig is not None:
        return read(options.kubeconfig)
    folder, _ = running(options.name, os.environ)
    return read(folder.kubeconfig)


@contextmanager
def reporting_failures() -> Iterator[None]:
    """Convert errors into messages for users."""
    try:
        yield
    except NoAnswer as error:
        raise Failure(f"the server does not respond: {error}") from error
    except ApiError as error:
        raise Failure(error.message) from error
    except (KVError, BadArchive, KubeconfigError) as error:
        raise Failure(str(error)) from error
