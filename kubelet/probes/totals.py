"""The results of the probes that run in real time, by pod."""

from collections.abc import Mapping

from mockube.container_runtime.records import Records
from mockube.kubelet.pod_lifecycle.probe_totals import ProbeTotals
from mockube.kubelet.pod_lifecycle.probing import Probe

TotalsByProbe = Mapping[tuple[str, Probe], ProbeTotals]
"""The results of probes, by container name and probe."""
_NONE: TotalsByProbe = {}


class _Totals(dict[tuple[str, Probe], ProbeTotals]):
    """The results of a pod's probes, by container name and probe."""


class _OfProcesses(_Totals):
    pass


class _Observed(_Totals):
    pass


class TotalsByPod:
    def __init__(self, records: Records, part: type[_Totals] = _Observed) -> None:
        self._records = records
        self._part = part

    def count(self, uid: str, container: str, probe: Probe, *, success: bool, seconds: float) -> None:
        totals = self._records.ensure(uid, self._part).setdefault((container, probe), ProbeTotals())
        totals.add(success=success, seconds=seconds)

    def of(self, uid: str) -> TotalsByProbe:
        return self._records.find(uid, self._part) or _NONE


class ProbeRecords:
    def __init__(self, records: Records) -> None:
        self.processes = TotalsByPod(records, _OfProcesses)
        """The results of all probes of processes."""
        self.observed = TotalsByPod(records)
        """The results of those probes of simulated containers that run in real time."""
