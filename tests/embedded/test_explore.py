import asyncio
import os
import re
from contextlib import suppress

import pytest

import mockube
from mockube.exploration.plans import TEXTS
from mockube.exploration.scenario import InvalidScenario
from mockube.failure import Failure
from tests.support.explored_operators import PATH, SCENARIO, Api, annotation, careful, careless, follow
from tests.support.server.webhook_server import webhook_server

FEW = ["second operator", "restart", "delete a node", "change the resource and back", "edit an owned object"]


def texts(found):
    return [problem.text for finding in found.findings for problem in finding.problems]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_bugs_of_a_careless_operator_are_found():
    found = mockube.explore({**SCENARIO, "without": FEW}, main=careless, plans=40, patience=2)
    assert "ConfigMap child-* in default is left over" in texts(found), found
    assert "ConfigMap child-* in default stays when its resource is deleted" in texts(found), found
    # On a busy machine one repetition of three may end before it shows the bug.
    rates = [(finding.confirmed, finding.repetitions) for finding in found.findings]
    assert all(confirmed >= 2 and repetitions == 3 for confirmed, repetitions in rates), rates
    assert all(found.exploration.covered[area] for area in found.exploration.coverable)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_careful_operator_has_no_finding():
    found = mockube.explore(SCENARIO, main=careful, plans=40)
    assert found.findings == [], found
    assert found.exploration.runs == 40


def impatient(kubeconfig):
    """Mark the site as ready, and read it again and again until it is marked, without a pause."""
    api = Api(kubeconfig)

    def reconcile(items):
        for site in items:
            if "ready" in site["metadata"].get("annotations", {}):
                continue
            with suppress(OSError):
                api.request("PATCH", f"{PATH}/site", annotation("ready", "1"))
            while "ready" not in api.request("GET", f"{PATH}/site")["metadata"].get("annotations", {}):
                pass

    follow(api, f"{PATH}?fieldSelector=metadata.name%3Dsite&", reconcile)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_loop_of_reads_is_found():
    without = [name for name in TEXTS if name != "server error"]
    found = mockube.explore({**SCENARIO, "without": without}, main=impatient, plans=2, patience=1)
    (loop,) = [each for each in texts(found) if "reads" in each]
    assert re.fullmatch(
        r"\d+ reads in \d+\.\d s while nothing changes; \d+ of them are get of configmaps", loop
    )


EVENTS = ("hold an event", "lose an event", "late events")
OTHERS = ("down during a step", "token expires", "clock behind")


RECOLOUR = {
    "patch": "ConfigMap/site",
    "with": {"data": {"color": "blue"}},
    "until": ["ConfigMap/site-child jsonpath={.data.color}=blue"],
}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_events_tokens_and_the_clock_are_disturbed():
    without = [name for name in TEXTS if name not in (*EVENTS, *OTHERS)]
    scenario = {**SCENARIO, "act": [*SCENARIO["act"], RECOLOUR], "without": without}
    found = mockube.explore(scenario, main=careful, plans=12)
    assert found.findings == [], found
    assert found.exploration.not_applied == 0, found
    assert {name for name, count in found.exploration.covered.items() if count} == {
        "writes x moments", "events x kinds", "old caches", "disturbances after steps",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_step_that_needs_a_webhook_is_done_when_it_answers_again(tmp_path):
    async with webhook_server(tmp_path) as server:
        configuration = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "checks"},
            "webhooks": [server.hook("ok")],
        }
        scenario = {
            "arrange": [{"apply": configuration}],
            "act": [*SCENARIO["act"], RECOLOUR],
            "without": [name for name in TEXTS if name != "webhooks down during a step"],
        }
        found = await asyncio.to_thread(mockube.explore, scenario, main=careful, plans=2)
    assert found.findings == [], found
    assert found.exploration.runs == 2
    assert found.exploration.covered == found.exploration.coverable == {"disturbances after steps": 2}


@pytest.mark.slow
async def test_explore_in_a_running_loop():
    scenario = {**SCENARIO, "without": ["delete the resource"]}
    found = mockube.explore(scenario, main=careful, plans=1)
    assert found.exploration.runs == 1
    assert "in 1 plan," in repr(found)


def exit_at_once(_):
    print("no flag was given", flush=True)  # noqa: T201 - it is the log of an operator
    os._exit(2)


def do_nothing(kubeconfig):
    Api(kubeconfig).request("GET", "/api/v1/namespaces/default/configmaps")
    asyncio.run(asyncio.Event().wait())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "scenario", "message"),
    [
        pytest.param(exit_at_once, SCENARIO, "exited with code 2: no flag was given", id="exits at once"),
        pytest.param(do_nothing, {**SCENARIO, "timeout": 0.3}, "does not succeed undisturbed: step 1: ", id="does nothing"),
        pytest.param(careful, {**SCENARIO, "arrange": [{"delete": "pod/a"}]}, r'arrange\[0\]: pods "a" not found', id="arrange"),
    ],
)  # fmt: skip
def test_scenario_that_does_not_work_undisturbed(main, scenario, message):
    with pytest.raises((Failure, InvalidScenario), match=message):
        mockube.explore(scenario, main=main)


@pytest.mark.parametrize(
    "arguments",
    [pytest.param({}, id="neither"), pytest.param({"command": ["a"], "main": careful}, id="both")],
)
def test_operator_is_a_command_or_a_function(arguments):
    with pytest.raises(TypeError, match="either a command or main"):
        mockube.explore(SCENARIO, **arguments)
