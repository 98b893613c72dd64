"""A key whose object has been deleted needs no writes, in every controller: watch events and queues run apart."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager import catalog
from mockube.controller_manager.controllers.certificates.signing import csr_signing_controller
from mockube.controller_manager.controllers.devicetainteviction.controller import device_taint_eviction
from mockube.controller_manager.controllers.devicetainteviction.rules import EvictionCounts, taint_rule_status
from mockube.controller_manager.controllers.resourceclaim.controller import (
    claim_key,
    pod_key,
    resource_claims,
)
from tests.support.controllers.fake_api_server import FakeApiServer

ABSENT = Key("default", "absent")
OTHERS = [
    (csr_signing_controller(None), Key("", "absent")),
    (device_taint_eviction(FeatureGates()), ABSENT),
    (taint_rule_status(EvictionCounts()), Key("", "absent")),
    (resource_claims(), pod_key(ABSENT)),
    (resource_claims(), claim_key(*ABSENT)),
]
"""Those that a runnable makes."""


@pytest.mark.parametrize(
    ("controller", "key"),
    [*((controller, ABSENT) for controller in catalog.CONTROLLERS), *OTHERS],
    ids=lambda value: getattr(value, "queue", ""),
)
def test_absent_object_needs_no_writes(controller, key):
    assert FakeApiServer(controller, SteppedClock()).reconcile(key) == ([], None)
