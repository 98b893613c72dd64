"""The values of flags for simulated containers."""

from argparse import ArgumentTypeError
from typing import Final

from mockube.apimachinery.gotext import quote

SIMULATED: Final = "simulated"
PROCESS: Final = "process"
AUTO: Final = "auto"
NAMESPACES: Final = "namespaces"
HOST: Final = "host"
"""The networks of pods whose containers run as processes."""
ASSUME: Final = "assume"
WAIT: Final = "wait"
FAIL: Final = "fail"
"""What becomes of programs that are not simulated."""
UNKNOWN_PROGRAMS: Final = {ASSUME: ASSUME, WAIT: WAIT, FAIL: FAIL, "succeed": ASSUME}
"""The same by what flags and annotations say; the last is the older name."""
RUN: Final = "run"
"""What containers do whose images are not known, unless they cannot be pulled (`FAIL`)."""
CLUSTER_DNS: Final = "10.0.0.10"
"""The address of the cluster's name server in the default range of Services."""


def parse_container_runtime(text: str) -> str:
    if text not in (SIMULATED, PROCESS):
        raise ArgumentTypeError(f"{quote(text)} is neither {SIMULATED} nor {PROCESS}")
    return text


def parse_pod_network(text: str) -> str:
    if text not in (AUTO, NAMESPACES, HOST):
        raise ArgumentTypeError(f"{quote(text)} is neither {AUTO} nor {NAMESPACES} nor {HOST}")
    return text


def parse_unknown_programs(text: str) -> str:
    if text not in UNKNOWN_PROGRAMS:
        raise ArgumentTypeError(f"{quote(text)} is neither {ASSUME} nor {WAIT} nor {FAIL}")
    return UNKNOWN_PROGRAMS[text]


def parse_unknown_images(text: str) -> str:
    if text not in (RUN, FAIL):
        raise ArgumentTypeError(f"{quote(text)} is neither {RUN} nor {FAIL}")
    return text
