"""One UnitedDeployment and all that is known when it is decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from controller_manager.controllers.uniteddeployment.adapters.adapter import Adapter
from controller_manager.controllers.uniteddeployment.conditions import Conditions
from controller_manager.controllers.uniteddeployment.revision import History
from controller_manager.controllers.uniteddeployment.standing import Standing
from controller_manager.controllers.uniteddeployment.subset import Subset
from controller_manager.controllers.uniteddeployment.views import UnitedView
from controller_manager.runtime.resource import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    view: UnitedView
    history: History
    subsets: Mapping[str, Subset]
    """Those that have a workload, by name."""
    foreign: Sequence[tuple[Adapter, Sequence[Tree]]]
    """Workloads of other kinds than the template asks for."""
    conditions: Conditions
    """The UnitedDeployment's, with what is now said of its revision."""
    standings: Mapping[str, Standing]
    """Of each subset that has a place in the status."""
    now: datetime
