"""The flags of OpenKruise's controllers."""

from typing import Annotated

from msgspec import Struct

from mockube.component_base.flags import Flag, positive_int

from .gates import read_kruise_gates


class KruiseFlags(Struct, frozen=True, kw_only=True):
    """OpenKruise"""

    concurrent_advancedstatefulset_syncs: Annotated[
        int, Flag("advanced stateful sets at a time (3)", positive_int)
    ] = 3
    concurrent_cloneset_syncs: Annotated[int, Flag("clone sets at a time (3)", positive_int)] = 3
    concurrent_uniteddeployment_syncs: Annotated[
        int, Flag("united deployments at a time (3)", positive_int)
    ] = 3
    kruise_feature_gates: Annotated[
        tuple[str, ...],
        Flag(
            "feature gates of OpenKruise's controllers, as A=true,B=false (none)",
            read_kruise_gates,
            metavar="GATES",
        ),
    ] = ()
