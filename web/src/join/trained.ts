// The models that jobs have come to: the one that this page helped to make, and
// those that this browser has kept. Each is tried on a text, taken along, forgotten.
import type { Edge, Model, Participation, Prediction } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { byId, element, message, say, show } from "../dom.js";
import { bytes, count, percent } from "../format.js";
import { forgetModel, keepModel, keptModels, type KeptModel } from "./shelf.js";

const most = 5; // labels shown

type Predict = (text: string) => Promise<Prediction[]>;

let shown: { job: string; model: Model; predict: Predict } | undefined;
let loadClient: () => Promise<Edge>;

/** Lists what is kept; load fetches the client where one of them is tried. */
export function offerShelf(load: () => Promise<Edge>): void {
  loadClient = load;
  void paintShelf();
}

/** Offers the model of a participation that has one, and keeps it. */
export function offerModel(p: Participation, about: About | undefined): void {
  if (!p.model || shown?.model === p.model) return;
  const job = about?.job ?? "This job";
  const { model } = p;
  offer("The model you helped to make", job, model, (text) => p.predict(text));
  say("trained-kept", "");
  void keepModel({ job, at: Date.now(), model }).then((kept) => {
    say("trained-kept", kept ? "It is kept in this browser, also when the page is closed." : "This browser keeps nothing: download it before you close the page.");
    show("forget", kept);
  });
}

function offer(title: string, job: string, model: Model, predict: Predict): void {
  shown = { job, model, predict };
  show("trained", true);
  say("trained-title", title);
  say("trained-what", `${job}, after ${count(model.version, "round")}` +
    `${model.rank ? `, adapter of rank ${model.rank}` : ", its head alone"}. It runs in this page: what you type goes nowhere.`);
  say("archive", `Download the adapter (${bytes(model.archive.length)})`);
  say("try-state", "");
  byId("try-result").replaceChildren();
  void paintShelf();
}

/** The kept models but for the one that is shown. */
async function paintShelf(): Promise<void> {
  const kept = (await keptModels()).filter((k) => k.job !== shown?.job);
  show("shelf", kept.length > 0);
  byId("shelf-list").replaceChildren(...kept.map(row));
}

function row(k: KeptModel): HTMLElement {
  const act = (text: string, run: () => void) => {
    const button = element("button", { type: "button", class: "quiet small", "aria-label": `${text}: ${k.job}` }, text);
    button.addEventListener("click", run);
    return button;
  };
  const date = new Date(k.at).toLocaleDateString("en-GB", { dateStyle: "medium" });
  return element("li", {}, element("span", {}, element("b", {}, k.job), ` ${count(k.model.version, "round")}, ${date}`),
    element("span", { class: "buttons" },
      ...(k.model.kept ? [act("Try it", () => void open(k))] : []),
      act("Download", () => download(k.model)),
      act("Forget", () => void forgetModel(k.job).then(paintShelf))));
}

async function open(k: KeptModel): Promise<void> {
  say("shelf-state", "Opening it…");
  byId("shelf-state").classList.remove("failed");
  try {
    const edge = await loadClient();
    await edge.open(k.model);
    say("shelf-state", "");
    offer("A model that this browser kept", k.job, k.model, (text) => edge.predict(text));
    say("trained-kept", "");
    show("forget", true);
    byId("trained").focus();
  } catch (error) {
    say("shelf-state", `It does not open: ${message(error)}`);
    byId("shelf-state").classList.add("failed");
  }
}

async function label(text: string): Promise<void> {
  if (!shown) return;
  const button = byId<HTMLButtonElement>("try-button");
  button.disabled = true;
  say("try-state", "Reading it…");
  try {
    const found = await shown.predict(text);
    say("try-state", found[0] ? `Most likely ${found[0].label}, ${percent(found[0].probability)}` : "It has no labels.");
    byId("try-result").replaceChildren(...found.slice(0, most).map(bar));
    byId("try-state").classList.remove("failed");
  } catch (error) {
    say("try-state", message(error));
    byId("try-state").classList.add("failed");
    byId("try-result").replaceChildren();
  }
  button.disabled = false;
}

function bar({ label, probability }: Prediction): HTMLElement {
  const meter = element("meter", { max: "1", "aria-hidden": "true" });
  meter.value = probability;
  return element("li", {}, element("span", {}, label), meter, element("span", {}, percent(probability)));
}

function download(model: Model): void {
  const address = URL.createObjectURL(new Blob([model.archive as Uint8Array<ArrayBuffer>], { type: "application/zip" }));
  element("a", { href: address, download: `adapter-rank-${model.rank}.zip` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

byId("archive").addEventListener("click", () => { if (shown) download(shown.model); });
byId("forget").addEventListener("click", () => {
  if (!shown) return;
  const { job } = shown;
  void forgetModel(job).then(() => {
    show("forget", false);
    say("trained-kept", "It is forgotten; in this page it stays until you close it.");
  });
});
byId("try").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId<HTMLTextAreaElement>("try-text").value.trim();
  if (text) void label(text);
});
