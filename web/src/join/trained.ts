// The model at the end: try it on a text, take it along.
import type { Model, Participation, Prediction } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { byId, element, message, say, show } from "../dom.js";
import { bytes, count, percent } from "../format.js";

const most = 5; // labels shown
let offered: Model | undefined;

/** Offers the model of a participation that has one. */
export function offerModel(p: Participation, about: About | undefined): void {
  if (!p.model || offered === p.model) return;
  const model = offered = p.model;
  show("trained", true);
  say("trained-what", `${about?.job ?? "This job"}, after ${count(model.version, "round")}` +
    `${model.rank ? `, adapter of rank ${model.rank}` : ", its head alone"}. It runs in this page: what you type goes nowhere.`);
  say("archive", `Download the adapter (${bytes(model.archive.length)})`);
  byId("archive").addEventListener("click", () => keepArchive(model));
  byId("try").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = byId<HTMLTextAreaElement>("try-text").value.trim();
    if (text) void label(p, text);
  });
}

async function label(p: Participation, text: string): Promise<void> {
  const button = byId<HTMLButtonElement>("try-button");
  button.disabled = true;
  say("try-state", "Reading it…");
  try {
    const found = await p.predict(text);
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

function keepArchive(model: Model): void {
  const address = URL.createObjectURL(new Blob([model.archive as Uint8Array<ArrayBuffer>], { type: "application/zip" }));
  element("a", { href: address, download: `adapter-rank-${model.rank}.zip` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
