"""A number of pods as a UnitedDeployment asks for it for one subset: itself, or a percentage of all."""

from mockube.apimachinery import gotext
from mockube.apimachinery.intstr import IntOrString


class SubsetReplicasError(ValueError):
    """It is neither; the message is upstream's."""


def parse(total: int, value: IntOrString) -> int:
    """The number, a half being rounded up. A negative total is none."""
    if isinstance(value, int):
        if value < 0:
            raise SubsetReplicasError(f"subset replicas ({value}) should not be less than 0")
        return value
    if total < 0:
        problem = "should not be string when unitedDeployment replicas is empty"
        raise SubsetReplicasError(f"subsetReplicas ({value}) {problem}")
    percent = _percent(value)
    if not 0 <= percent <= 100:
        raise SubsetReplicasError(f"subset replicas ({value}) should be in range [0, 100]")
    return (total * percent + 50) // 100


def _percent(text: str) -> int:
    if not text.endswith("%"):
        problem = "only support integer value or percentage value with a suffix '%'"
        raise SubsetReplicasError(f"subset replicas ({text}) {problem}")
    try:
        return gotext.parse_int(text[:-1], function="Atoi")
    except gotext.NumberError as error:
        problem = f"should be correct percentage integer: {error}"
        raise SubsetReplicasError(f"subset replicas ({text}) {problem}") from None
