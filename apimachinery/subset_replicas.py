"""The replicas of a UnitedDeployment's subset: a number, or a percentage of the total."""

from mockube.apimachinery import gotext
from mockube.apimachinery.intstr import IntOrString


class SubsetReplicasError(ValueError):
    """A value is not a valid number of subset replicas; the message is OpenKruise's."""


def parse_subset_replicas(total: int, value: IntOrString) -> int:
    """Return the replicas of a subset: a number, or a percentage of the total, rounded half up. A negative total is unset."""
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
