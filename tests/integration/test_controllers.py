"""Controllers: the queues of the manager, as the API server reads them."""

import asyncio

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from mockube import Cluster
from mockube.apimachinery.status import ServiceUnavailable
from mockube.apiserver.control.controllers import Controllers
from mockube.apiserver.http.controllers_page import ManagerPage
from mockube.apiserver.http.outgoing_limits import MAX_DOCUMENT
from mockube.component_base.component_urls import CONTROLLERS_PAGE, write_component_urls
from tests.support.processes.process import ApiServerProcess, ManagerProcess, client
from tests.support.server.apiserver import Client, running, running_with_roles

PATH = "/apis/control.mockube.dev/v1alpha1/controllers"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@pytest.mark.slow
async def test_manager_of_another_process_has_queues(tmp_path):
    urls = tmp_path / "urls.json"
    with (
        ApiServerProcess(tmp_path, f"--component-urls={urls}") as server,
        ManagerProcess(server.kubeconfig, "--metrics-port=0", f"--write-component-urls={urls}"),
    ):
        async with client(server) as admin:
            await admin.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
            async with asyncio.timeout(30):
                newest = []
                while not any(each["name"] == "shop" for each in newest):
                    answer = await admin.get(f"{PATH}/serviceaccount")
                    newest = answer.body["status"]["newest"] if answer.status == 200 else []
    (found,) = [each for each in newest if each["name"] == "shop" and each.get("actions")][-1:]
    assert found["actions"] == ["create serviceaccounts"]


@pytest.mark.slow
def test_embedded_manager_has_queues():
    with Cluster() as cluster:
        queues = {
            each["metadata"]["name"]: each["status"]
            for each in cluster.list("controllers.control.mockube.dev")
        }
        assert queues["deployment"]["depth"] == 0
        assert not queues["deployment"]["newest"]


async def test_server_without_manager_refuses():
    async with running() as client_:
        answer = await client_.get(PATH)
    assert (answer.status, answer.body["message"]) == (
        503,
        "the server does not know where the controller manager is: it has no --component-urls",
    )


async def test_manager_that_is_away_is_reported(tmp_path):
    urls = tmp_path / "urls.json"
    page = ManagerPage(urls)
    with pytest.raises(ServiceUnavailable, match="not started"):
        await page.read()
    write_component_urls(urls, {CONTROLLERS_PAGE: "http://127.0.0.1:1/debug/controllers"})
    with pytest.raises(ServiceUnavailable, match="does not respond"):
        await page.read()


@pytest.mark.parametrize("size", [1 << 20, MAX_DOCUMENT + 1])
async def test_long_page_is_read_whole_or_refused(tmp_path, size):
    async def serve(_):
        return web.Response(body=b"x" * size)

    urls = tmp_path / "urls.json"
    async with RawTestServer(serve) as server:
        write_component_urls(urls, {CONTROLLERS_PAGE: str(server.make_url("/"))})
        page = ManagerPage(urls)
        if size < MAX_DOCUMENT:
            assert len(await page.read()) == size
        else:
            with pytest.raises(ServiceUnavailable, match=f"longer than {MAX_DOCUMENT} bytes"):
                await page.read()


async def test_page_that_is_no_json_is_reported():
    async def read():
        return b"<html>"

    with pytest.raises(ServiceUnavailable, match="no valid page"):
        await Controllers(read, None, None)._queues()


async def test_reconciliations_need_the_right_to_list_everything_in_their_namespace():
    newest = [{"namespace": namespace, "name": "web"} for namespace in ("shop", "secret", "")]
    page = {"deployment": {"depth": 0, "newest": newest}}

    async def read():
        return orjson.dumps(page)

    async with running_with_roles(environment={"read_controllers": read}) as client_:
        everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        controllers = {**everything, "resources": ["controllers"]}
        await client_.post("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        await bind(client_, RBAC, "ClusterRole", controllers)
        await bind(client_, f"{RBAC}/namespaces/shop", "Role", everything)
        alice = Client(client_.session, client_.url, authorization="Bearer alice")
        seen = (await alice.get(f"{PATH}/deployment")).body["status"]
        assert (seen["depth"], seen["newest"]) == (0, newest[:1])
        (listed,) = (await alice.get(PATH)).body["items"]
        assert listed["status"]["newest"] == newest[:1]
        assert (await client_.get(f"{PATH}/deployment")).body["status"]["newest"] == newest


async def bind(client_, folder, kind, rule):
    """Bind alice to a role with one rule."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    binding = {"metadata": {"name": "r"}, "roleRef": role, "subjects": [subject]}
    assert (
        await client_.post(f"{folder}/{kind.lower()}s", {"metadata": {"name": "r"}, "rules": [rule]})
    ).status == 201
    assert (await client_.post(f"{folder}/{kind.lower()}bindings", binding)).status == 201
    await client_.server.registry.watch_cache.fresh()
