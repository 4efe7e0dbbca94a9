// The page outlives its job: what it is made of is put where its worker (sw.ts) finds it once the coordinator is
// gone, as long as there is something to come back to. A part of the script that is fetched where a browser has
// taken part, or has kept something.
import type { Edge } from "../../edge/src/index.js";
import { byId, element, say, title } from "../dom.js";
import { listed, t } from "../language/language.js";
import { saved } from "./saved.js";
import { keptModels } from "./shelf.js";

const here = new URL("./", document.baseURI); // without a token

/** By this page's path: several coordinators may be behind one name. */
const cacheName = `starling-page ${here.pathname}`;

/** What not every page needs: kept where this one has used it. */
const optional = /^assets\/(edge|edge-full|language|recorder)-/;

const patience = 30_000; // ms

/** Whether a worker is this page's own: a coordinator's at "/" sees to all paths that have none. */
const ours = (of: ServiceWorkerRegistration): boolean => of.scope === here.href;

/** What a kept copy says of itself: the policy that its coordinator sent with it holds on. */
const headers = ["content-type", "content-security-policy", "x-content-type-options", "referrer-policy",
  "cross-origin-opener-policy", "cross-origin-embedder-policy", "cross-origin-resource-policy"];

async function copy(of: Response): Promise<Response> {
  const kept = headers.flatMap((name) => { const value = of.headers.get(name); return value === null ? [] : [[name, value] as [string, string]]; });
  return new Response(await of.arrayBuffer(), { headers: kept });
}

/** Whether this browser has kept the page before. */
export const isKept = (): Promise<boolean> => caches.has(cacheName).catch(() => false);

let turn: Promise<unknown> = Promise.resolve(); // one at a time
let load: (() => Promise<Edge>) | undefined;

/** Keeps this page as its coordinator has it now, with the program that it uses; client fetches that. Says whether it is kept. */
export async function keepPage(program: string, full: boolean, client: () => Promise<Edge>): Promise<void> {
  load = client;
  const done = turn.then(() => put(program, full)).catch(() => false);
  turn = done;
  say("page-kept", t((await done) ? "page.kept" : "page.unkept", { host: location.host }));
}

async function put(program: string, full: boolean): Promise<boolean> {
  if (!navigator.serviceWorker) return false;
  const files = await (await fetch("page.json", { cache: "no-cache" })).json() as Record<string, string>;
  const used = new Set(performance.getEntriesByType("resource").map((e) => e.name));
  const cache = await caches.open(cacheName), before = new Set((await cache.keys()).map((r) => r.url));
  const wanted = new Map<string, string>();
  for (const [name, integrity] of Object.entries(files)) {
    const address = new URL(name, here).href;
    if (name === program || !optional.test(name) || used.has(address) || before.has(address)) wanted.set(address, integrity);
  }
  const page = wanted.get(here.href);
  if (!page) return false;
  wanted.delete(here.href);
  // Each is held to its hash; the page, which names the others, comes last.
  for (const [address, integrity] of wanted) {
    if (!before.has(address)) await cache.put(address, await copy(await fetch(address, { integrity })));
  }
  const answer = await copy(await fetch(here, { integrity: page, cache: "no-cache" }));
  const whole = full || [...wanted.keys()].some((a) => a.includes("/assets/edge-full-"));
  await cache.put(here.href, new Response((await answer.text()).replace("<html ", `<html data-kept="${whole ? "full" : "light"}" `), { headers: answer.headers }));
  for (const old of before) if (!wanted.has(old) && old !== here.href) await cache.delete(old);
  await navigator.serviceWorker.register("sw.js", { updateViaCache: "none" });
  const never = new Promise<false>((no) => setTimeout(no, patience, false)); // one that cannot be installed is never ready
  return Promise.race([navigator.serviceWorker.ready.then(ours), never]);
}

/** Forgets the page, too, once there is nothing left to come back to: no model, no job by its name, none that goes on. */
export async function letGo(): Promise<void> {
  if (!load || !(await isKept()) || (await keptModels()).length || (await saved.load())) return;
  const edge = await load();
  for (const file of await edge.sources()) if ((await edge.givenBy(file)).some((g) => !g.forgotten)) return;
  await turn;
  await caches.delete(cacheName);
  const worker = await navigator.serviceWorker.getRegistration(here.href);
  if (worker && ours(worker)) await worker.unregister();
  say("page-kept", t("page.let.go", { host: location.host }));
}

/** Offers to end the join that waits: without it, its token and its file stayed where nobody answers ever again. */
function offerEnd(): void {
  const button = element("button", { id: "gone-end", type: "button", class: "quiet small" }, t("page.gone.end"));
  button.addEventListener("click", () => void end(button).catch(() => undefined));
  byId("summary").after(button);
}

async function end(button: HTMLButtonElement): Promise<void> {
  await saved.forget();
  if (await saved.load()) return; // the browser did not let go of it: the button stays
  say("summary", t("page.gone.text", { host: location.host }));
  byId("job").tabIndex = -1;
  byId("job").focus(); // the button goes
  button.remove();
  await letGo();
}

/** What a kept page does: says so, shows what there is, and is loaded anew once somebody answers. */
export async function outlive(client: () => Promise<Edge>): Promise<void> {
  load = client;
  const name = listed([t("page.gone")]), join = await saved.load();
  title(listed([name, " · Starling"]));
  say("job", name);
  say("page-kept", t("page.kept", { host: location.host }));
  say("summary", join ? t("page.gone.join", { host: location.host }) : t("page.gone.text", { host: location.host }));
  if (join) offerEnd();
  if (!byId("gave").hidden) byId<HTMLDetailsElement>("gave-details").open = true;
  for (let n = 0; ; n++) {
    await new Promise((later) => setTimeout(later, n < 20 ? 3000 : 30_000));
    if (await fetch(here, { method: "HEAD", cache: "no-store" }).then((r) => r.ok, () => false)) return location.reload();
  }
}
