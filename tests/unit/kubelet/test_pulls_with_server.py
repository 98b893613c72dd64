"""Pods whose images cannot be pulled, and the images of nodes, with a real server on a clock that the test steps."""

from base64 import b64encode

import orjson

from tests.support.controllers.simulated import NODES, PODS, simulated_cluster

SECRETS = "/api/v1/namespaces/default/secrets"
EVENTS = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3D"
PRIVATE = "registry.test-of-pulls.io/team/app:1"


def containers(image):
    return [{"name": "c", "image": image}]


async def waiting(cluster, name="p"):
    return (await cluster.pod(name))["status"]["containerStatuses"][0]["state"]["waiting"]


async def events(cluster, name="p"):
    found = (await cluster.get(f"{EVENTS}{name}"))["items"]
    return [(event["type"], event["reason"], event["message"]) for event in found]


async def images_of(cluster, node="node-1"):
    return (await cluster.get(f"{NODES}/{node}"))["status"].get("images", [])


async def change_image(cluster, image, name="p"):
    patch = {"spec": {"containers": containers(image)}}
    await cluster.server.patch(f"{PODS}/{name}", patch, kind="strategic-merge-patch+json")
    await cluster.manager.settle()


async def test_pod_recovers_when_its_image_is_corrected():
    async with simulated_cluster() as cluster:
        await cluster.run(containers=containers("nginx:no-such-tag"))
        problem = (await waiting(cluster))["message"]
        assert await waiting(cluster) == {"reason": "ErrImagePull", "message": problem}
        await cluster.manager.step(1)
        back_off = 'Back-off pulling image "nginx:no-such-tag"'
        assert await waiting(cluster) == {
            "reason": "ImagePullBackOff",
            "message": f"{back_off}: ErrImagePull: {problem}",
        }
        assert await events(cluster) == [
            ("Normal", "Pulling", 'Pulling image "nginx:no-such-tag"'),
            ("Warning", "Failed", f'Failed to pull image "nginx:no-such-tag": {problem}'),
            ("Warning", "Failed", "Error: ErrImagePull"),
            ("Normal", "BackOff", back_off),
            ("Warning", "Failed", "Error: ImagePullBackOff"),
        ]
        await change_image(cluster, "nginx:1.29")
        pod = await cluster.pod()
        assert pod["status"]["phase"] == "Running"
        await cluster.manager.step(10)
        (image,) = await images_of(cluster)
        assert image["names"] == [
            pod["status"]["containerStatuses"][0]["imageID"],
            "docker.io/library/nginx:1.29",
        ]


async def test_status_of_a_node_is_written_once_for_many_pulls():
    async with simulated_cluster() as cluster:
        for number in range(8):
            await cluster.run(f"p{number}", containers=containers(f"nginx:1.2{number}"))
        assert await images_of(cluster) == []
        before = len(cluster.writes("/nodes/node-1/status"))
        await cluster.manager.step(10)
        assert len(await images_of(cluster)) == 8
        await cluster.manager.step(60)
        assert len(cluster.writes("/nodes/node-1/status")) - before == 1


async def test_private_image_needs_a_pull_secret_for_its_registry(tmp_path):
    file = tmp_path / "images.yaml"
    file.write_text("app: {names: [registry.test-of-pulls.io/team/app], private: true}\n")
    async with simulated_cluster(simulated_images=file) as cluster:
        for name, registry in (("right", "https://registry.test-of-pulls.io"), ("wrong", "ghcr.io")):
            data = orjson.dumps({"auths": {registry: {"auth": "eDp5"}}})
            secret = {
                "metadata": {"name": name},
                "type": "kubernetes.io/dockerconfigjson",
                "data": {".dockerconfigjson": b64encode(data).decode()},
            }
            assert (await cluster.server.post(SECRETS, secret)).status == 201
        for name in ("right", "wrong", "missing"):
            pull_secrets = [{"name": name}]
            await cluster.run(name, containers=containers(PRIVATE), imagePullSecrets=pull_secrets)
        assert (await cluster.pod("right"))["status"]["phase"] == "Running"
        for name in ("wrong", "missing"):
            assert (await waiting(cluster, name))["reason"] == "ErrImagePull"
            assert "401 Unauthorized" in (await waiting(cluster, name))["message"]
        reasons = {
            name: [reason for _, reason, _ in await events(cluster, name)] for name in ("wrong", "missing")
        }
        assert "FailedToRetrieveImagePullSecret" not in reasons["wrong"]
        assert "FailedToRetrieveImagePullSecret" in reasons["missing"]


async def test_unknown_image_runs_with_an_event():
    async with simulated_cluster() as cluster:
        pod = await cluster.run(containers=containers("example.org/app:1"))
        assert pod["status"]["phase"] == "Running"
        message = (
            "the image example.org/app:1 is not simulated: the container runs without it until it is stopped"
        )
        assert ("Warning", "NotSimulated", message) in await events(cluster)


async def test_unknown_image_fails_with_the_flag():
    async with simulated_cluster(unknown_images="fail") as cluster:
        await cluster.run(containers=containers("example.org/app:1"))
        assert "--unknown-images=fail" in (await waiting(cluster))["message"]
        await cluster.run("other")
        assert (await cluster.pod("other"))["status"]["phase"] == "Running"
