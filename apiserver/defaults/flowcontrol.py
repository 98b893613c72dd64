"""Defaults of flowcontrol.apiserver.k8s.io: FlowSchemas and priority levels."""

from typing import Final

from apiserver.defaults.table import of

DEFAULTS: Final = of(
    "io.k8s.api.flowcontrol.v1",
    {
        "FlowSchemaSpec": {"matchingPrecedence": 1000},
        "ExemptPriorityLevelConfiguration": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
        "LimitedPriorityLevelConfiguration": {"nominalConcurrencyShares": 30, "lendablePercent": 0},
        "QueuingConfiguration": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
    },
)
