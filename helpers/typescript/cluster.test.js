import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { platform } from "node:process";
import { after, before, mock, test } from "node:test";

import { connect, start, withCluster } from "mockube";

import { Client, readKubeconfig } from "./client.js";

const configMaps = "/api/v1/namespaces/default/configmaps";

/** @type {import("mockube").Cluster} */
let cluster;
before(async () => {
  cluster = await start("--nodes=1");
});
after(() => cluster.stop());

/** @param {string} name */
const create = (name) => cluster.request("POST", configMaps, { metadata: { name } });

test("a fault refuses requests and counts them", () =>
  cluster.run(async () => {
    const fault = await cluster.fault({
      match: { resource: "configmaps", verbs: ["create"] },
      refuse: { status: 503 },
      times: 1,
    });
    await assert.rejects(create("refused"), { name: "StatusError", code: 503, reason: "ServiceUnavailable" });
    await create("refused");
    assert.equal(await fault.hits(), 1);
    const refused = await cluster.requests(`fault=${fault.name}`);
    assert.deepEqual(
      refused.map(({ spec, status }) => [spec.verb, status?.code]),
      [["create", 503]],
    );
  }));

test("misspelt selectors are errors", async () => {
  await assert.rejects(cluster.requests("verb=updat"), /did you mean "update"/);
  await assert.rejects(cluster.changes("kind=Podd"), /did you mean "Pod"/);
});

test("a fault ends with its test", async () => {
  await cluster.run(async () => {
    await cluster.fault({ match: { path: "/version" }, cut: { when: "before" } });
    await assert.rejects(cluster.request("GET", "/version"));
  });
  assert.equal((await cluster.request("GET", "/version")).major, "1");
});

test("a test that fails because its cluster has died throws its own error", async () => {
  const print = mock.method(console, "error", () => {});
  const run = withCluster(async (own) => {
    await own.fault({ match: { path: "/version" }, cut: { when: "before" } });
    await own.stop();
    throw new Error("the cluster has died");
  }, "--nodes=0");
  await assert.rejects(run, /the cluster has died/);
  print.mock.restore();
});

test("a request that is held ends", () =>
  cluster.run(async () => {
    await cluster.fault({ match: { path: "/version" }, delay: { seconds: 600 } });
    const client = new Client(readKubeconfig(cluster.kubeconfig), 200);
    await assert.rejects(client.send("GET", "/version"), /GET \/version: no answer in 0.2 seconds/);
    client.close();
  }));

test("a fault that is misspelt is refused", async () => {
  const created = cluster.fault({ match: { resource: "pod" }, cut: { when: "before" } });
  await assert.rejects(created, /did you mean "pods"\?/);
});

test("requests are not those of the helper itself", async () => {
  await (await cluster.mark("own")).changes("kind=ConfigMap");
  await create("seen");
  const requests = await cluster.requests("user=kubernetes-admin");
  assert.deepEqual(
    requests.filter(({ spec }) => spec.group === "control.mockube.dev" || spec.uri.startsWith("/mockube/")),
    [],
  );
  assert.equal(requests.at(-1)?.spec.uri, configMaps);
});

test("changes after a mark have their patches", async () => {
  await create("colors");
  const mark = await cluster.mark("before-colors");
  await cluster.request("PATCH", `${configMaps}/colors`, { data: { color: "red" } });
  const selectors = ["kind=ConfigMap", "namespace=default", "name=colors"];
  assert.deepEqual(
    (await cluster.changes(...selectors)).map(({ spec }) => spec.type),
    ["ADDED", "MODIFIED"],
  );
  const [change, ...others] = await mark.changes(...selectors);
  assert.deepEqual(others, []);
  assert.deepEqual(change.spec.patch, [{ op: "add", path: "/data", value: { color: "red" } }]);
});

test("a rewind brings objects back", async () => {
  await create("kept");
  await cluster.mark("with-kept");
  await cluster.request("DELETE", `${configMaps}/kept`);
  await cluster.rewind("with-kept");
  assert.equal((await cluster.request("GET", `${configMaps}/kept`)).metadata.name, "kept");
});

test("a fork goes on by itself", { skip: platform !== "linux" }, async () => {
  const fork = await cluster.fork(`node-helper-${process.pid}`);
  try {
    await fork.request("POST", configMaps, { metadata: { name: "only-in-the-fork" } });
    await assert.rejects(cluster.request("GET", `${configMaps}/only-in-the-fork`), { code: 404 });
  } finally {
    await fork.stop();
  }
});

test("a fork that is refused throws an error", () => assert.rejects(cluster.fork("Not-A-Name"), /Not-A-Name/));

test("the clock stands still and is advanced", async () => {
  await cluster.pause();
  try {
    const began = await cluster.now();
    const ended = await cluster.advance(60);
    assert.equal(Number(ended) - Number(began), 60_000);
    assert.deepEqual(await cluster.now(), ended);
  } finally {
    await cluster.resume();
  }
});

test("the clock runs faster", async () => {
  await cluster.setRate(100);
  try {
    const began = Number(await cluster.now());
    const deadline = Date.now() + 30_000;
    while (Number(await cluster.now()) - began < 10_000) assert.ok(Date.now() < deadline);
  } finally {
    await cluster.setRate(1);
  }
});

test("a failed test prints what happened since its start", async () => {
  await create("earlier");
  const print = mock.method(console, "error", () => {});
  const run = cluster.run(async () => {
    await create("later");
    await cluster.request("POST", "/api/v1/namespaces/default/events", {
      metadata: { name: "late" },
      type: "Warning",
      reason: "Late",
      message: "it is late",
      involvedObject: { kind: "ConfigMap", namespace: "default", name: "later" },
    });
    throw new Error("the test fails");
  });
  await assert.rejects(run, /the test fails/);
  print.mock.restore();
  const report = String(print.mock.calls[0].arguments[0]);
  assert.match(report, / 201 create \/api\/v1\/namespaces\/default\/configmaps \(kubernetes-admin, mockube-helper-typescript\)/);
  assert.match(report, /Warning Late ConfigMap default\/later: it is late/);
  assert.match(report, / ADDED ConfigMap default\/later \(kubernetes-admin, /);
  assert.doesNotMatch(report, /earlier|kube-controller-manager\)|control\.mockube\.dev/);
});

test("a cluster ends with its test", async () => {
  const kubeconfig = await withCluster(async (own) => {
    assert.equal((await own.request("GET", "/api/v1/nodes")).items.length, 0);
    assert.ok(existsSync(own.kubeconfig));
    return own.kubeconfig;
  }, "--nodes=0")();
  assert.ok(!existsSync(kubeconfig));
});

test("a flag that does not exist is reported", () => assert.rejects(start("--no-such-flag"), /--no-such-flag/));

test("a missing program is reported", async () => {
  const program = process.env.MOCKUBE;
  process.env.MOCKUBE = "/no/such/program";
  try {
    await assert.rejects(start(), /MOCKUBE/);
  } finally {
    if (program === undefined) delete process.env.MOCKUBE;
    else process.env.MOCKUBE = program;
  }
});

test("a kubeconfig of another program is refused", async () => {
  const path = join(await mkdtemp(join(tmpdir(), "mockube-")), "kubeconfig");
  writeFileSync(path, "server: https://127.0.0.1\n");
  assert.throws(() => connect(path), /certificate-authority-data/);
  for (const none of ["", undefined]) assert.throws(() => connect(/** @type {string} */ (none)), /is KUBECONFIG set\?/);
});
