import assert from "node:assert/strict";
import { test } from "node:test";

import { reportText } from "./report.js";

test("a change without patch, time and author has a line", () => {
  const metadata = { name: "7-c9b68a033f7b", resourceVersion: "7" };
  const object = { apiVersion: "v1", kind: "ConfigMap", resource: "configmaps", namespace: "default", name: "large" };
  /** @type {import("mockube").Change} */
  const change = {
    metadata,
    spec: { revision: 7, type: "MODIFIED", object, patchOmitted: "it is larger than 32768 bytes" },
  };
  const report = reportText({ request: 0, revision: 6 }, { requests: [], events: [], changes: [change] });
  const lines = [
    "mockube: changes",
    "    --:--:--.--- MODIFIED ConfigMap default/large (the author is not known)",
    "        no patch: it is larger than 32768 bytes",
  ];
  assert.ok(report.endsWith(lines.join("\n")), report);
});
