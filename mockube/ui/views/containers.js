// The containers of a pod: their logs, and a shell in one of them.
import { openStreams, textOf } from "../api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { pathOf } from "../objects.js";

const MAX_CHARACTERS = 400_000;
const TAIL = 1000;
/** Channels of the protocol: the first byte of a message. */
const [STDIN, STDOUT, STDERR, STATUS] = [0, 1, 2, 3];

const namesOf = (pod) => ["initContainers", "containers", "ephemeralContainers"].flatMap((field) => (pod.spec?.[field] ?? []).map((each) => each.name));

function Choice({ names, name, choose }) {
  return html`<label>Container <select value=${name} onChange=${(event) => choose(event.target.value)}>${names.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>`;
}

/** A text that is kept at its end while it grows, unless the reader has scrolled up; the oldest part of a long one is left out. */
function Output({ text, label }) {
  const element = useRef(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isAtEnd.current) element.current.scrollTop = element.current.scrollHeight;
  }, [text]);
  return html`<pre class="output" ref=${element} tabindex="0" role="log" aria-label=${label} onScroll=${({ target }) => {
    isAtEnd.current = target.scrollTop + target.clientHeight > target.scrollHeight - 30;
  }}>${text}</pre>`;
}

const appended = (old, more) => (old + more).slice(-MAX_CHARACTERS);

export function Logs({ selected, namespace, name, moment }) {
  const names = namesOf(selected.object);
  const [container, setContainer] = useState(selected.object.spec?.containers?.[0]?.name ?? "");
  const [isPrevious, setPrevious] = useState(false);
  const [text, setText] = useState("");
  const [state, setState] = useState({ note: "Reading …", isError: false });
  useEffect(() => {
    if (moment || !container) return undefined;
    const abort = new AbortController();
    setText("");
    setState({ note: "Following …" });
    const query = new URLSearchParams({ container, tailLines: TAIL, ...(isPrevious ? { previous: "true" } : { follow: "true" }) });
    const read = async () => {
      try {
        for await (const more of textOf(`${pathOf(selected.kind, namespace, name)}/log?${query}`, abort.signal)) {
          if (abort.signal.aborted) return; // it is of the container before
          setText((old) => appended(old, more));
        }
        if (!abort.signal.aborted) setState({ note: "The log has ended." });
      } catch (error) {
        if (!abort.signal.aborted) setState({ note: error.message, isError: true });
      }
    };
    read();
    return () => abort.abort();
  }, [selected.uid, container, isPrevious, moment]);
  if (moment) return html`<p class="muted">Logs are those of now: go back to now to read them.</p>`;
  return html`
    <div class="act"><${Choice} names=${names} name=${container} choose=${setContainer} />
      <label><input type="checkbox" checked=${isPrevious} onChange=${(event) => setPrevious(event.target.checked)} /> before the last restart</label></div>
    <${Output} text=${text} label=${`Log of ${container}`} />
    <p role="status" class=${state.isError ? "problem" : "muted"}>${state.note}</p>`;
}

/** Return what ended a command, from its Status. */
export function endOf(status) {
  const code = status.details?.causes?.find((cause) => cause.reason === "ExitCode")?.message;
  if (status.status === "Success") return "The shell has ended.";
  return code === undefined ? status.message : `The shell has ended with exit code ${code}.`;
}

/** A shell that reads lines: it has no terminal, so that programs that draw on one are for `kubectl exec -it`. */
export function Shell({ selected, namespace, name, moment }) {
  const names = namesOf(selected.object);
  const [container, setContainer] = useState(selected.object.spec?.containers?.[0]?.name ?? "");
  const [session, setSession] = useState(0);
  const [text, setText] = useState("");
  const [note, setNote] = useState("");
  const [isOpen, setOpen] = useState(false);
  const socket = useRef(null);
  const lines = useRef({ all: [], index: 0 });
  useEffect(() => {
    if (moment || !container) return undefined;
    setText("");
    setNote("Connecting …");
    let isCurrent = true;
    const query = new URLSearchParams([["container", container], ["command", "sh"], ["stdin", "true"], ["stdout", "true"], ["stderr", "true"]]);
    const streams = openStreams(`${pathOf(selected.kind, namespace, name)}/exec?${query}`);
    const decoders = new Map([STDOUT, STDERR].map((channel) => [channel, new TextDecoder()]));
    let end = "";
    streams.onopen = () => {
      setOpen(true);
      setNote("");
    };
    streams.onmessage = ({ data }) => {
      if (!isCurrent) return;
      const bytes = new Uint8Array(data);
      if (decoders.has(bytes[0])) setText((old) => appended(old, decoders.get(bytes[0]).decode(bytes.subarray(1), { stream: true })));
      else if (bytes[0] === STATUS) end = endOf(JSON.parse(new TextDecoder().decode(bytes.subarray(1))));
    };
    streams.onclose = () => {
      if (!isCurrent) return;
      setOpen(false);
      setNote(end || "The server has closed the connection, or refused it: your rights may not allow to create pods/exec, or the container does not run.");
    };
    socket.current = streams;
    return () => {
      isCurrent = false;
      setOpen(false);
      streams.close();
    };
  }, [selected.uid, container, session, moment]);
  if (moment) return html`<p class="muted">A shell is one of now: go back to now to open it.</p>`;
  const send = (event) => {
    event.preventDefault();
    const line = event.target.elements.line.value;
    const encoded = new TextEncoder().encode(`${line}\n`);
    socket.current.send(new Uint8Array([STDIN, ...encoded]));
    setText((old) => appended(old, `$ ${line}\n`));
    if (line) lines.current.all.push(line);
    lines.current.index = lines.current.all.length;
    event.target.reset();
  };
  const onKeyDown = (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const { all, index } = lines.current;
    lines.current.index = Math.max(0, Math.min(all.length, index + step));
    event.target.value = all[lines.current.index] ?? "";
  };
  return html`
    <div class="act"><${Choice} names=${names} name=${container} choose=${setContainer} /><button onClick=${() => setSession(session + 1)}>${isOpen ? "Restart the shell" : "Open a shell"}</button></div>
    <${Output} text=${text} label=${`Shell in ${container}`} />
    <form class="act" onSubmit=${send}><label class="wide">$ <input name="line" autocomplete="off" spellcheck="false" disabled=${!isOpen} aria-label="Command" onKeyDown=${onKeyDown} /></label>
      <button disabled=${!isOpen}>Run</button></form>
    ${note && html`<p role="status" class="muted">${note}</p>`}`;
}
