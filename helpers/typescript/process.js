import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

/**
 * The command for which the cluster exists: it prints the kubeconfig, and ends when its input does, so that the cluster ends with the
 * process of the test even if that is killed.
 */
const holdOpen = `printf '%s\\n' "$KUBECONFIG"; exec cat >/dev/null`;

function program() {
  return process.env.MOCKUBE || "mockube";
}

/**
 * Stops the cluster with a name.
 * @param {string} name
 */
export async function stopNamed(name) {
  await promisify(execFile)(program(), ["down", "--name", name, "--delete"]);
}

/**
 * Starts `mockube run`, and returns the path of the kubeconfig and a function that stops it.
 * @param {string[]} flags
 * @returns {Promise<{ kubeconfig: string, stop: () => Promise<void> }>}
 */
export async function startProcess(flags) {
  const child = spawn(program(), ["run", ...flags, "--", "sh", "-c", holdOpen]);
  let messages = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (messages += text));
  child.stdin.on("error", () => {}); // the program has ended: its exit code says so
  const exited = once(child, "close").then(
    ([code]) => code,
    (error) => {
      throw new Error(`the program mockube is not on the PATH, and MOCKUBE does not name it: ${error.message}`);
    },
  );
  const lines = createInterface({ input: child.stdout });
  const kubeconfig = await Promise.race([once(lines, "line").then(([line]) => line), exited]);
  if (typeof kubeconfig !== "string") {
    throw new Error(`mockube run ${flags.join(" ")} did not start a cluster: exit code ${kubeconfig}\n${messages}`);
  }
  return {
    kubeconfig,
    async stop() {
      child.stdin.end();
      const code = await exited;
      if (code !== 0) throw new Error(`mockube: exit code ${code}\n${messages}`);
    },
  };
}
