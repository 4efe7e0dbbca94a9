// The edge runs here, away from the page's thread: the page stays
// responsive while a step trains, and can end it by ending the worker.
import "go-wasm-exec"; // sets globalThis.Go
import { accountNames, changeAccount, openAccount, whileAlone } from "./account.js";
import { StarlingError, type ErrorCode } from "./errors.js";
import { unfilter } from "./filter.js";
import type { Given } from "./client.js";
import { decode } from "./picture.js";
import type { Client, FromWorker, ToWorker, WorkerJoin } from "./protocol.js";
import type { Event, PolicyError } from "./event.js";
import { trusted } from "./trusted.js";
import { canShare, help, Team, type Help, type Product } from "./threads.js";

declare class Go {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

interface Scope {
  starling?: Client;
  starlingReady?: () => void;
  /** Where workers can share memory: what the client starts programs over several of them with. */
  starlingTeam?: (program: Uint8Array<ArrayBuffer>, products: Product[], helpers: number) => Promise<Team>;
  onmessage: ((message: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker): void;
}

type Question = Extract<ToWorker, { id: number }>;

const scope = globalThis as unknown as Scope;
/** What the client, or this worker, has called an error. What a page asks for fails of its data, where nothing is said. */
const codeOf = (error: unknown, otherwise: ErrorCode): ErrorCode => {
  const code = (error as { code?: unknown }).code;
  return typeof code === "string" && /^[a-z-]+$/.test(code) && code !== "failed" ? code as ErrorCode : otherwise;
};
const reasonOf = (error: unknown) => error instanceof Error ? error.message : String(error);

async function start(program: string): Promise<Client> {
  const go = new Go();
  const ready = new Promise<void>((resolve) => { scope.starlingReady = resolve; });
  const { instance } = await WebAssembly.instantiate(await fetched(program), go.importObject)
    .catch((cause: unknown) => { throw new StarlingError("not-loaded", reasonOf(cause), { cause }); });
  // It waits for questions until its worker is ended; what ends it before is a fault, such as no room.
  const ended = go.run(instance).then(() => { throw new StarlingError("not-loaded", "the program in this page has ended: it needs more memory than it has, or has a fault"); });
  ended.catch(failed);
  await Promise.race([ready, ended]);
  if (!scope.starling) throw new StarlingError("not-loaded", "the edge did not announce itself");
  return scope.starling;
}

/** The client as WebAssembly, however it is kept and served: packed by gzip or not, filtered (see filter.js) or not. */
async function fetched(program: string): Promise<Uint8Array<ArrayBuffer>> {
  let response: Response;
  try {
    response = await fetch(program);
  } catch (cause) {
    throw new StarlingError("not-loaded", `the edge cannot be fetched from ${program}: ${reasonOf(cause)}`, { cause });
  }
  if (!response.ok) throw new StarlingError("not-loaded", `the edge cannot be fetched: the server answers ${response.status}`);
  let bytes = new Uint8Array(await response.arrayBuffer());
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    if (typeof DecompressionStream !== "function") throw new StarlingError("unsupported", "this browser cannot unpack gzip");
    bytes = new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
  }
  return bytes[0] === 0 && bytes[1] === 0x61 ? bytes : unfilter(bytes);
}

/** Another worker of this script, to compute for this one. It ends with its team, or with this worker. */
function spawn(given: Help): Worker {
  const helper = new Worker(trusted(location.href), { name: "starling helper" });
  helper.onerror = (event) => event.preventDefault(); // its parts are computed here then
  helper.postMessage({ kind: "help", given } satisfies ToWorker);
  return helper;
}

if (canShare()) scope.starlingTeam = (program, products, helpers) => Team.start(program, products, helpers, spawn);

let client: Promise<Client> | undefined;

async function answer(message: ToWorker): Promise<void> {
  switch (message.kind) {
    case "load":
      client = start(message.program);
      scope.postMessage({ kind: "loaded", version: (await client).version });
      return;
    case "help":
      return help(message.given); // which does not come back
    case "preview":
    case "sample":
    case "account":
    case "accounts":
    case "forget":
    case "quote":
    case "limits":
    case "open":
    case "predict": {
      try {
        if (!client) throw new Error("nothing is loaded");
        scope.postMessage({ kind: "answer", id: message.id, json: await asked(await client, message) });
      } catch (error) {
        enough.delete(message.id);
        scope.postMessage({ kind: "refused", id: message.id, reason: reasonOf(error), code: codeOf(error, "data"), limits: limitsOf(error) });
      }
      return;
    }
    case "enough":
      enough.add(message.of);
      return;
    case "join":
      if (!client) throw new Error("nothing is loaded");
      await join(await client, message.options);
  }
}

async function asked(ready: Client, question: Question): Promise<string> {
  switch (question.kind) {
    case "preview":
      return ready.preview({ ...question.source, decode });
    case "sample":
      return ready.sample(question.n, question.of);
    case "account": {
      const account = await openAccount(question.fileName);
      return `{"given":${await ready.given(account?.last)},"kept":${account !== undefined}}`;
    }
    case "accounts":
      return JSON.stringify(await accountNames());
    case "forget":
      return changeAccount(question.fileName, (account) => ready.forget(account, question.job)).then(() => "null");
    case "quote":
      return ready.quote(question.trial);
    case "limits": {
      const account = question.of.fileName === undefined ? undefined : await openAccount(question.of.fileName);
      return ready.limits({ ...question.of, account: account?.last });
    }
    case "open":
      return ready.open(question.model).then(() => "null");
    case "predict":
      return ready.predict(typeof question.input === "string" ? question.input : { ...question.input, decode }, question.untrained, (text) => written(question.id, text));
  }
}

/** Questions whose texts nobody waits for any more. */
const enough = new Set<number>();

/** Tells a text so far, lets what was sent meanwhile in, and says whether to go on. */
async function written(id: number, text: string): Promise<boolean> {
  scope.postMessage({ kind: "written", id, text });
  await new Promise((later) => setTimeout(later));
  return !enough.has(id);
}

/** Takes part with the data's account, which no other tab then has. */
async function join(ready: Client, options: WorkerJoin): Promise<void> {
  await whileAlone(options.fileName, async () => {
    const account = await openAccount(options.fileName);
    const tell = (event: string, given?: string) => {
      if (given) scope.postMessage({ kind: "given", given: JSON.parse(given) as Given[], kept: account !== undefined });
      scope.postMessage({ kind: "event", event: JSON.parse(event) as Event });
    };
    const { identity, model } = await ready.join({ ...options, decode, account: account?.last, keep: account?.keep }, tell);
    scope.postMessage({ kind: "finished", identity, model: model ?? undefined });
  });
}

/** The limits that an error names. */
function limitsOf(error: unknown): PolicyError[] | undefined {
  const { limits } = error as { limits?: string };
  return limits ? JSON.parse(limits) as PolicyError[] : undefined;
}

function failed(error: unknown): void {
  scope.postMessage({ kind: "failed", reason: reasonOf(error), code: codeOf(error, "failed"), limits: limitsOf(error) });
}

scope.onmessage = (message) => {
  answer(message.data).catch(failed);
};
