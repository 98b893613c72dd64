"""The root CA is a ClusterTrustBundle, and old requests of pods' certificates are deleted."""

import base64

import pytest
import yaml

from mockube.client.connection_options import ClientConnectionOptions
from mockube.component_base.clock import RealClock, SteppedClock
from mockube.controller_manager.config.settings import Config, Controllers
from mockube.controller_manager.controllers.certificates.cleaner import POD_REQUEST_CLEANER
from mockube.controller_manager.controllers.rootca.trust_bundle import TRUST_BUNDLE, bundle_name
from tests.support.controllers.running_manager import running_cluster
from tests.support.server.pod_certificates import authority, spec

CERTIFICATES = "/apis/certificates.k8s.io/v1"
BUNDLES = f"{CERTIFICATES}/clustertrustbundles"
REQUESTS = f"{CERTIFICATES}/namespaces/default/podcertificaterequests"
SIGNER = "kubernetes.io/kube-apiserver-serving"


@pytest.fixture
async def cluster(tmp_path):
    bundle = authority(RealClock().now())
    file = tmp_path / "ca.crt"
    file.write_text(bundle)
    config = Config(controllers=Controllers(root_ca_file=file))
    runnables = [TRUST_BUNDLE, POD_REQUEST_CLEANER]
    async with running_cluster(clock=SteppedClock(), config=config, runnables=runnables) as (server, manager):
        await manager.settle()
        yield server, manager, bundle


async def published(server):
    items = (await server.get(BUNDLES)).body["items"]
    return {item["metadata"]["name"]: item["spec"]["trustBundle"] for item in items}


async def test_root_ca_is_published_as_bundle(cluster):
    server, _, bundle = cluster
    name = bundle_name(bundle)
    assert name.startswith("kubernetes.io:kube-apiserver-serving:")
    assert await published(server) == {name: bundle}


@pytest.mark.parametrize("is_inline", [True, False])
async def test_ca_of_kubeconfig_is_published_only_if_it_is_inline(tmp_path, is_inline):
    bundle = authority(RealClock().now())
    (tmp_path / "ca.crt").write_text(bundle)
    data = base64.b64encode(bundle.encode()).decode()
    trust = {"certificate-authority-data": data} if is_inline else {"certificate-authority": "ca.crt"}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1", **trust}}],
                "contexts": [{"name": "c", "context": {"cluster": "c"}}],
                "current-context": "c",
            }
        )
    )
    config = Config(server=ClientConnectionOptions(kubeconfig=kubeconfig))
    async with running_cluster(config=config, runnables=[TRUST_BUNDLE]) as (server, manager):
        await manager.settle()
        assert [*(await published(server)).values()] == ([bundle] if is_inline else [])


async def test_deleted_bundle_is_published_again(cluster):
    server, manager, bundle = cluster
    await server.delete(f"{BUNDLES}/{bundle_name(bundle)}")
    await manager.settle()
    assert await published(server) == {bundle_name(bundle): bundle}


async def test_changed_bundle_is_restored_and_others_of_signer_are_deleted(cluster):
    server, manager, bundle = cluster
    other = authority(RealClock().now())
    await server.patch(f"{BUNDLES}/{bundle_name(bundle)}", {"spec": {"trustBundle": other}})
    for name, of in ((f"{SIGNER.replace('/', ':')}:a", {"signerName": SIGNER}), ("b", {})):
        made = await server.post(BUNDLES, {"metadata": {"name": name}, "spec": {"trustBundle": other, **of}})
        assert made.status == 201, made.body
    await manager.settle()
    assert await published(server) == {bundle_name(bundle): bundle, "b": other}


async def test_requests_are_deleted_after_fifteen_minutes(cluster):
    server, manager, _ = cluster
    assert (await server.post(REQUESTS, {"metadata": {"name": "a"}, "spec": spec()})).status == 201
    await manager.settle()
    await manager.step(600)
    assert (await server.get(f"{REQUESTS}/a")).status == 200
    await manager.step(301)
    assert (await server.get(f"{REQUESTS}/a")).status == 404
