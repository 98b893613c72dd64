import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { start } from "mockube";

import { Client, readKubeconfig } from "./client.js";

/** @type {import("mockube").Cluster} */
let cluster;
before(async () => {
  cluster = await start("--nodes=1");
});
after(() => cluster.stop());

test("an advance stops at each tick of a clock", () =>
  cluster.run(async () => {
    await cluster.pause();
    const clock = await cluster.clock("shop-operator");
    const began = clock.now();
    /** @type {number[]} */
    const ticks = [];
    clock.setInterval((word) => ticks.push(clock.now(), word.length), 7000, "");
    const ended = await cluster.advance(60);
    assert.equal(ticks.length, 16);
    ticks
      .filter((_, index) => index % 2 === 0)
      .forEach((tick, index) => {
        const late = tick - began - 7000 * (index + 1);
        assert.ok(late >= -1 && late <= 2000, `tick ${index + 1} is ${late} ms late`);
      });
    assert.deepEqual(clock.date(), ended);
  }));

test("a timer fires once unless it is cleared", () =>
  cluster.run(async () => {
    await cluster.pause();
    const clock = await cluster.clock("shop-operator");
    /** @type {string[]} */
    const fired = [];
    clock.setTimeout(() => fired.push("first"), 5000);
    clock.clearTimeout(clock.setTimeout(() => fired.push("cleared"), 5000));
    const slept = clock.sleep(4000).then(() => fired.push("slept"));
    await cluster.advance(20);
    await slept;
    assert.deepEqual(fired, ["slept", "first"]);
  }));

test("work that follows a timer is part of the advance", () =>
  cluster.run(async () => {
    await cluster.pause();
    const clock = await cluster.clock("shop-operator");
    const path = "/api/v1/namespaces/default/configmaps";
    const work = clock.sleep(30_000).then(() => cluster.request("POST", path, { metadata: { name: "later" } }));
    await cluster.advance(60);
    assert.equal((await cluster.request("GET", `${path}/later`)).metadata.name, "later");
    await work;
  }));

test("a timer that throws ends the clock", async () => {
  await cluster.pause();
  const clock = await cluster.clock("shop-operator");
  clock.setTimeout(() => {
    throw new Error("wrong");
  });
  await assert.rejects(clock.sleep(86_400_000), /wrong/);
  await assert.rejects(clock.sleep(1), /wrong/);
  await assert.rejects(clock.stop(), /wrong/);
});

test("a sleep ends with the clock", async () => {
  await cluster.pause();
  const clock = await cluster.clock("shop-operator");
  const slept = assert.rejects(clock.sleep(86_400_000), /the clock was stopped/);
  await clock.stop();
  await slept;
  await assert.rejects(clock.sleep(1), /the clock was stopped/);
  assert.throws(() => clock.setTimeout(() => {}), /the clock was stopped/);
});

test("a response that is refused is an error", async () => {
  const refused = new Client({ ...readKubeconfig(cluster.kubeconfig), token: "wrong" });
  const error = await new Promise((resolve) => refused.lines("/mockube/clock", () => {}, resolve));
  assert.match(error.message, /GET .mockube.clock: 401/);
  refused.close();
});

test("a clock runs with the cluster, and ends with its test", async () => {
  const clock = await cluster.run(async () => {
    await cluster.resume();
    const running = await cluster.clock("shop-operator");
    const began = running.now();
    await running.sleep(100);
    assert.ok(running.now() - began >= 100);
    return running;
  });
  await clock.stop();
  const path = "/apis/control.mockube.dev/v1alpha1/clockparticipants";
  assert.deepEqual((await cluster.request("GET", path)).items, []);
});
