import { statusLines, bytes } from "./status.js";
function byId(id) {
    const found = document.getElementById(id);
    if (!found)
        throw new Error(`the page has no #${id}`);
    return found;
}
const identityKey = "starling-identity";
// The identity lets a device be enrolled once. It is made and kept before the
// first join, so that a page that is closed in mid-job comes back as the same
// device; without storage (a private window) each visit is a new one.
function deviceIdentity() {
    try {
        const hex = localStorage.getItem(identityKey) ?? "";
        if (/^[0-9a-f]{64}$/.test(hex))
            return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
    }
    catch {
        // Storage is off.
    }
    const made = crypto.getRandomValues(new Uint8Array(32));
    try {
        localStorage.setItem(identityKey, Array.from(made, (b) => b.toString(16).padStart(2, "0")).join(""));
    }
    catch {
        // The next visit will enrol again.
    }
    return made;
}
async function refresh() {
    const list = byId("status");
    try {
        const response = await fetch("v1/status", { cache: "no-store" });
        if (!response.ok)
            throw new Error(`the coordinator answered ${response.status}`);
        const status = (await response.json());
        byId("job").textContent = status.job || "Starling";
        const bar = byId("rounds");
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
    }
    catch (error) {
        byId("connection").textContent = `No word from the coordinator: ${error instanceof Error ? error.message : error}`;
    }
}
let worker;
function stop(text, failed) {
    worker?.terminate();
    worker = undefined;
    const line = byId("edge-state");
    line.textContent = text;
    line.classList.toggle("failed", failed);
    byId("join").disabled = false;
    byId("leave").disabled = true;
}
function show(event) {
    const parts = [event.text ?? event.state ?? event.type];
    if (event.round !== undefined)
        parts.push(`round ${event.round}`);
    if (event.rank !== undefined)
        parts.push(`rank ${event.rank}`);
    byId("edge-state").textContent = parts.join(", ");
    if (event.bytesUp !== undefined)
        byId("sent").textContent = bytes(event.bytesUp);
    if (event.bytesDown !== undefined)
        byId("received").textContent = bytes(event.bytesDown);
    const bar = byId("edge-progress");
    if (event.progress !== undefined)
        bar.value = event.progress;
}
async function join() {
    const file = byId("file").files?.[0];
    if (!file) {
        stop("Choose a file first.", true);
        return;
    }
    byId("join").disabled = true;
    byId("leave").disabled = false;
    byId("edge-state").classList.remove("failed");
    show({ type: "state", text: "starting", progress: 0 });
    const url = new URL("v1/join", location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const options = {
        url: url.href,
        token: location.hash.slice(1) || undefined,
        fileName: file.name,
        data: new Uint8Array(await file.arrayBuffer()),
        identity: deviceIdentity(),
    };
    worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    worker.onerror = (event) => stop(`The worker failed: ${event.message}`, true);
    worker.onmessage = (message) => {
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
                byId("edge-progress").value = 1;
                stop(`Finished: this browser took part in ${said.summary.rounds} rounds.`, false);
        }
    };
    worker.postMessage({ kind: "join", options });
}
byId("join").addEventListener("click", () => void join());
byId("leave").addEventListener("click", () => stop("Left the job.", false));
void refresh();
setInterval(() => void refresh(), 1000);
