"""`mockube up`: start a cluster, and say what to type next."""

import argparse
import asyncio
from importlib.metadata import version
from pathlib import Path

from mockube.cli.parsing import Parser
from mockube.cli.shape import add_shape
from mockube.plane.launch import Launch, control_plane

KUBECONFIG = Path(".mockube", "kubeconfig")

READY = """mockube {version}: a Kubernetes cluster is ready, with {nodes} simulated nodes. In another shell:

  export KUBECONFIG={kubeconfig}
  kubectl get nodes
  kubectl create deployment web --image=nginx --replicas=3
  kubectl get pods -o wide

It is gone when this ends, unless `--data-dir DIR` keeps it; `mockube up --help` says what else can be set.
Ctrl+C ends it."""


def add_flags(parser: Parser) -> None:
    add_shape(parser)
    parser.add_argument("--secure-port", default="6443", help="the port for HTTPS; 0 picks a free one (6443)")


def run(options: argparse.Namespace) -> int:
    kubeconfig = KUBECONFIG.absolute()

    def say() -> None:
        print(
            READY.format(version=version("mockube"), kubeconfig=kubeconfig, nodes=options.simulate_nodes),
            flush=True,
        )

    plane = control_plane(
        Launch(
            kubeconfig=kubeconfig,
            nodes=options.simulate_nodes,
            packs=options.packs,
            flags=["--secure-port", options.secure_port],
        )
    )
    return asyncio.run(plane.supervise(once_ready=say))
