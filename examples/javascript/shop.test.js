// Tests of a shop, which is a Deployment and its settings.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as k8s from "@kubernetes/client-node";

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const namespace = "shop-js";

before(() => core.createNamespace({ body: { metadata: { name: namespace } } }));
after(() => core.deleteNamespace({ name: namespace }));

test("a deployment becomes available", async () => {
  const labels = { app: "web" };
  const body = {
    metadata: { name: "web" },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } },
    },
  };
  await apps.createNamespacedDeployment({ namespace, body });
  const available = (web) => web.status?.availableReplicas === 2;
  const watch = new k8s.Watch(config);
  const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
  const request = await new Promise((resolve, reject) => {
    const ended = (error) => reject(error ?? new Error("the watch ended"));
    const request = watch.watch(path, {}, (_type, web) => available(web) && resolve(request), ended);
    request.catch(reject);
  });
  request.abort();
  assert.ok(available(await apps.readNamespacedDeployment({ name: "web", namespace })));
});

test("settings are patched, and an invalid name is refused with the server's message", async () => {
  await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: "settings" }, data: { color: "red" } } });
  const patch = [{ op: "replace", path: "/data/color", value: "blue" }];
  await core.patchNamespacedConfigMap({ name: "settings", namespace, body: patch });
  assert.deepEqual((await core.readNamespacedConfigMap({ name: "settings", namespace })).data, { color: "blue" });
  const refused = core.createNamespacedConfigMap({ namespace, body: { metadata: { name: "No" } } });
  await assert.rejects(refused, (error) => error.code === 422 && JSON.parse(error.body).reason === "Invalid");
});

test("an informer sees what changes", async () => {
  const list = () => core.listNamespacedSecret({ namespace });
  const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/secrets`, list);
  const seen = new Promise((resolve) => informer.on("add", (secret) => secret.metadata.name === "key" && resolve()));
  await informer.start();
  await core.createNamespacedSecret({ namespace, body: { metadata: { name: "key" }, stringData: { a: "b" } } });
  await seen;
  await informer.stop();
});
