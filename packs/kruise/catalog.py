"""The list of OpenKruise's controllers, as its flags configure them."""

from collections.abc import Sequence

from msgspec.structs import replace

from mockube.controller_manager.control.controller import Controller

from .controllers.advancedstatefulset.controller import (
    ADVANCED_STATEFUL_SET,
    ADVANCED_STATEFUL_SET_COUNTING_PREPARED,
)
from .controllers.cloneset.controller import CLONE_SET, CLONE_SET_COUNTING_PREPARED
from .controllers.containerlaunchpriority.controller import CONTAINER_LAUNCH_PRIORITY
from .controllers.uniteddeployment.controller import UNITED_DEPLOYMENT
from .flags import KruiseFlags
from .gates import PREPARING_UPDATE_AS_UPDATE


def controllers(flags: KruiseFlags) -> Sequence[Controller]:
    counts_prepared = PREPARING_UPDATE_AS_UPDATE in flags.kruise_feature_gates
    stateful = ADVANCED_STATEFUL_SET_COUNTING_PREPARED if counts_prepared else ADVANCED_STATEFUL_SET
    clone = CLONE_SET_COUNTING_PREPARED if counts_prepared else CLONE_SET
    return (
        replace(stateful, workers=flags.concurrent_advancedstatefulset_syncs),
        replace(clone, workers=flags.concurrent_cloneset_syncs),
        replace(UNITED_DEPLOYMENT, workers=flags.concurrent_uniteddeployment_syncs),
        CONTAINER_LAUNCH_PRIORITY,
    )
