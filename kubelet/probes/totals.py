"""The results of the probes that run in real time, by pod."""

from collections.abc import Mapping

from mockube.kubelet.pod_lifecycle.probe_totals import ProbeTotals
from mockube.kubelet.pod_lifecycle.probing import Probe

TotalsByProbe = Mapping[tuple[str, Probe], ProbeTotals]
"""The results of probes, by container name and probe."""
_NONE: TotalsByProbe = {}


class TotalsByPod:
    def __init__(self) -> None:
        self._pods: dict[str, dict[tuple[str, Probe], ProbeTotals]] = {}

    def count(self, uid: str, container: str, probe: Probe, *, success: bool, seconds: float) -> None:
        totals = self._pods.setdefault(uid, {}).setdefault((container, probe), ProbeTotals())
        totals.add(success=success, seconds=seconds)

    def of(self, uid: str) -> TotalsByProbe:
        return self._pods.get(uid, _NONE)

    def forget(self, uid: str) -> None:
        self._pods.pop(uid, None)


class ProbeRecords:
    def __init__(self) -> None:
        self.processes = TotalsByPod()
        """The results of all probes of processes."""
        self.observed = TotalsByPod()
        """The results of those probes of simulated containers that run in real time."""

    def forget(self, uid: str) -> None:
        self.processes.forget(uid)
        self.observed.forget(uid)
