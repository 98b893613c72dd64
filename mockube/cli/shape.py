"""Flags that several commands share: what a cluster consists of, which one is meant, how an answer is printed."""

from apimachinery.flags import natural
from mockube.cli.parsing import Parser
from mockube.plane.launch import KRUISE, NODES


def add_shape(parser: Parser) -> None:
    parser.add_argument(
        "--simulate-nodes",
        type=natural,
        default=NODES,
        metavar="N",
        help=f"how many nodes to simulate ({NODES})",
    )
    parser.add_argument(
        "--packs",
        default=KRUISE,
        metavar="NAMES",
        help=f"kinds to serve besides Kubernetes' own ({KRUISE})",
    )
