// The page: what the job is doing, and a way to take part from this browser.
import "./style.css";
import type { EdgeEvent, FromWorker, JoinOptions, ToWorker } from "../edge/src/protocol.js";
import type { About, Progress } from "./api.js";
import { bytes, promise, statusLines } from "./status.js";

declare const WORKER_URL: string;
declare const EDGE_URL: string;
declare const EDGE_FULL_URL: string;

function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

const identityKey = "starling-identity";

// The identity lets a device be enrolled once. It is made and kept before the
// first join, so that a page that is closed in mid-job comes back as the same
// device; without storage (a private window) each visit is a new one.
function deviceIdentity(): Uint8Array {
  try {
    const hex = localStorage.getItem(identityKey) ?? "";
    if (/^[0-9a-f]{64}$/.test(hex)) return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  } catch {
    // Storage is off.
  }
  const made = crypto.getRandomValues(new Uint8Array(32));
  try {
    localStorage.setItem(identityKey, Array.from(made, (b) => b.toString(16).padStart(2, "0")).join(""));
  } catch {
    // The next visit will enrol again.
  }
  return made;
}

async function refresh(): Promise<void> {
  const list = byId("status");
  try {
    const response = await fetch("v1/status", { cache: "no-store" });
    if (!response.ok) throw new Error(`the coordinator answered ${response.status}`);
    const status = (await response.json()) as Progress;
    byId("job").textContent = status.job || "Starling";
    const bar = byId<HTMLProgressElement>("rounds");
    bar.max = Math.max(1, status.rounds);
    bar.value = ["measuring", "finished"].includes(status.state) ? status.rounds : Math.max(0, status.round - 1);
    list.replaceChildren(...statusLines(status).flatMap(([name, value]) => {
      const term = document.createElement("dt");
      const text = document.createElement("dd");
      term.textContent = name;
      text.textContent = value;
      return [term, text];
    }));
    byId("connection").textContent = "";
  } catch (error) {
    byId("connection").textContent = `No word from the coordinator: ${error instanceof Error ? error.message : error}`;
  }
}

let about: About | undefined;

async function describe(): Promise<void> {
  const response = await fetch("v1/job");
  if (!response.ok) throw new Error(`the coordinator answered ${response.status}`);
  about = (await response.json()) as About;
  byId("promise").replaceChildren(...promise(about).map((text) => {
    const line = document.createElement("p");
    line.textContent = text;
    return line;
  }));
}

let worker: Worker | undefined;

function stop(text: string, failed: boolean): void {
  worker?.terminate();
  worker = undefined;
  const line = byId("edge-state");
  line.textContent = text;
  line.classList.toggle("failed", failed);
  byId<HTMLButtonElement>("join").disabled = false;
  byId<HTMLButtonElement>("leave").disabled = true;
}

function show(event: EdgeEvent): void {
  const parts = [event.text ?? event.state ?? event.type];
  if (event.round !== undefined) parts.push(`round ${event.round}`);
  if (event.rank !== undefined) parts.push(`rank ${event.rank}`);
  byId("edge-state").textContent = parts.join(", ");
  if (event.bytesUp !== undefined) byId("sent").textContent = bytes(event.bytesUp);
  if (event.bytesDown !== undefined) byId("received").textContent = bytes(event.bytesDown);
  const bar = byId<HTMLProgressElement>("edge-progress");
  if (event.progress !== undefined) bar.value = event.progress;
}

async function join(): Promise<void> {
  const file = byId<HTMLInputElement>("file").files?.[0];
  if (!file) {
    stop("Choose a file first.", true);
    return;
  }
  byId<HTMLButtonElement>("join").disabled = true;
  byId<HTMLButtonElement>("leave").disabled = false;
  byId("edge-state").classList.remove("failed");
  show({ type: "state", text: "starting", progress: 0 });

  const url = new URL("v1/join", location.href);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const options: JoinOptions = {
    url: url.href,
    token: location.hash.slice(1) || undefined,
    fileName: file.name,
    data: new Uint8Array(await file.arrayBuffer()),
    identity: deviceIdentity(),
  };
  const program = about?.hybrid ? EDGE_FULL_URL : EDGE_URL;
  if (!program) {
    stop("This coordinator was built without the browser's edge: run `make web`, then `make build`.", true);
    return;
  }
  worker = new Worker(WORKER_URL);
  worker.onerror = (event) => stop(`The worker failed: ${event.message}`, true);
  worker.onmessage = (message: MessageEvent<FromWorker>) => {
    const said = message.data;
    switch (said.kind) {
      case "event":
        show(said.event);
        return;
      case "failed":
        stop(said.reason, true);
        return;
      case "finished":
        byId("sent").textContent = bytes(said.summary.bytesUp);
        byId("received").textContent = bytes(said.summary.bytesDown);
        byId<HTMLProgressElement>("edge-progress").value = 1;
        stop(`Finished: this browser took part in ${said.summary.rounds} rounds.`, false);
    }
  };
  worker.postMessage({ kind: "join", program: new URL(program, location.href).href, options } satisfies ToWorker);
}

byId("join").addEventListener("click", () => void join());
byId("leave").addEventListener("click", () => stop("Left the job.", false));
void refresh();
describe().catch((error) => { byId("promise").textContent = `What the job protects is not known: ${error}`; });
setInterval(() => void refresh(), 1000);
