"""The values of flags for simulated containers."""

from argparse import ArgumentTypeError
from typing import Final

from mockube.apimachinery.gotext import quote

SIMULATED: Final = "simulated"
PROCESS: Final = "process"
SUCCEED: Final = "succeed"
FAIL: Final = "fail"
"""What programs do that are not simulated."""


def parse_container_runtime(text: str) -> str:
    if text not in (SIMULATED, PROCESS):
        raise ArgumentTypeError(f"{quote(text)} is neither {SIMULATED} nor {PROCESS}")
    return text


def parse_unknown_programs(text: str) -> str:
    if text not in (SUCCEED, FAIL):
        raise ArgumentTypeError(f"{quote(text)} is neither {SUCCEED} nor {FAIL}")
    return text
