// The drain of a node: its pods are evicted, and budgets may refuse that.
import { list, patch, post } from "../api.js";
import { pathOf } from "../objects.js";

/** Return the pods that a drain evicts: those that a DaemonSet or the kubelet itself runs would come back. */
export function podsToEvict(pods) {
  return pods.filter(({ metadata, status }) => !["Succeeded", "Failed"].includes(status?.phase) && !metadata.deletionTimestamp
    && !metadata.annotations?.["kubernetes.io/config.mirror"]
    && !metadata.ownerReferences?.some((owner) => owner.controller && owner.kind === "DaemonSet"));
}

const isUnmanaged = ({ metadata }) => !metadata.ownerReferences?.some((owner) => owner.controller);
const textOf = ({ metadata: { namespace, name } }) => `${namespace}/${name}`;

/** Cordon a node and evict its pods; return the lines that say what happened. Pods that no controller would make again need a word of the user. */
export async function drain(node, { evictsUnmanaged }) {
  const found = [];
  await list(`/api/v1/pods?fieldSelector=${encodeURIComponent(`spec.nodeName=${node.name}`)}`, (items) => found.push(...items));
  const pods = podsToEvict(found);
  const unmanaged = pods.filter(isUnmanaged);
  if (unmanaged.length && !evictsUnmanaged) throw new Error(`Nothing is done: no controller would make these pods again: ${unmanaged.map(textOf).join(", ")}`);
  await patch(pathOf(node.kind, "", node.name), { spec: { unschedulable: true } });
  const refused = [];
  let gone = 0;
  for (const pod of pods) {
    const { name, namespace } = pod.metadata;
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
    try {
      await post(`/api/v1/namespaces/${namespace}/pods/${name}/eviction`, body);
    } catch (error) {
      if (error.code === 401 || error.code === 0) throw error;
      if (error.code === 404) gone += 1;
      else refused.push(`${textOf(pod)}: ${error.message}`);
    }
  }
  const evicted = `${node.name} is cordoned, and ${pods.length - refused.length - gone} of ${pods.length} pods are evicted${gone ? `; ${gone} were gone already` : ""}.`;
  return refused.length ? [evicted, "Refused, drain again later:", ...refused] : [evicted];
}
