// The drain of a node: its pods are evicted, and budgets may refuse that.
import { patch, post } from "../api.js";
import { pathOf } from "../objects.js";

/** Return the pods of a node that a drain evicts: those that a DaemonSet or the kubelet itself runs would come back. */
export function podsToEvict(pods, node) {
  return pods.filter(({ object: { metadata, spec, status } }) => spec?.nodeName === node
    && !["Succeeded", "Failed"].includes(status?.phase) && !metadata.deletionTimestamp
    && !metadata.annotations?.["kubernetes.io/config.mirror"]
    && !metadata.ownerReferences?.some((owner) => owner.controller && owner.kind === "DaemonSet"));
}

/** Cordon a node and evict its pods; return the lines that say what happened. */
export async function drain(node, objects) {
  await patch(pathOf(node.kind, "", node.name), { spec: { unschedulable: true } });
  const pods = podsToEvict(objects.of("pods"), node.name);
  const refused = [];
  for (const pod of pods) {
    const body = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name: pod.name, namespace: pod.namespace } };
    try {
      await post(`${pathOf(pod.kind, pod.namespace, pod.name)}/eviction`, body);
    } catch (error) {
      if (error.code === 401 || error.code === 0) throw error;
      if (error.code !== 404) refused.push(`${pod.namespace}/${pod.name}: ${error.message}`); // it is gone already
    }
  }
  const evicted = `${node.name} is cordoned, and ${pods.length - refused.length} of ${pods.length} pods are evicted.`;
  return refused.length ? [evicted, "Refused, drain again later:", ...refused] : [evicted];
}
