"""The rows of policy."""

from apiserver.resources.spec import STATUS, Group, Resource

GROUP = Group(
    name="policy",
    resources=(
        Resource(
            group="policy",
            version="v1",
            name="poddisruptionbudgets",
            kind="PodDisruptionBudget",
            short_names=("pdb",),
            subresources=(STATUS,),
        ),
    ),
)
