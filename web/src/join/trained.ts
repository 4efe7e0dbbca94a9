// The models that jobs have come to: the one that this page helped to make, and
// those that this browser has kept. Each is tried, taken along, forgotten.
import type { Edge, Input, Model, Participation, Prediction, Trial } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { byId, element, message, say, show } from "../dom.js";
import { date, t, type Text, type Told } from "../language/language.js";
import { bytes, percent, rounds } from "./amounts.js";
import { listenOnce, soundOf } from "./hearing.js";
import { forgetModel, keepModel, keptModels, type KeptModel } from "./shelf.js";

const most = 5; // labels shown

type Predict = (input: Input, trial?: Trial) => Promise<Prediction[]>;

let shown: { job: string; id?: string; task: string; sound?: About["sound"]; model: Model; predict: Predict } | undefined;
let loadClient: () => Promise<Edge>;

/** Lists what is kept; load fetches the client where one of them is tried. */
export function offerShelf(load: () => Promise<Edge>): void {
  loadClient = load;
  void paintShelf();
}

/** Offers the model of a participation that has one, and keeps it. */
export function offerModel(p: Participation, about: About | undefined): void {
  if (!p.model || shown?.model === p.model) return;
  const job = about?.job ?? `${t("trained.this")}`, task = about?.task ?? "classify";
  const { model } = p, id = about?.id, sound = about?.sound;
  offer(t("trained.title"), { job, id, task, sound, model, predict: (input, trial) => p.predict(input, trial) });
  say("trained-kept", "");
  void keepModel({ job, id, task, sound, at: Date.now(), model }).then((kept) => {
    say("trained-kept", kept ? t("trained.kept") : t("trained.unkept"));
    show("forget", kept);
  });
}

function offer(title: Told, of: NonNullable<typeof shown>): void {
  const { job, task, model } = shown = of;
  show("trained", true);
  say("trained-title", title);
  const after = { job, rounds: rounds(model.version) };
  say("trained-what", model.rank ? t("trained.what", { ...after, rank: model.rank }) : t("trained.head", after));
  say("archive", t("trained.download", { size: bytes(model.archive.length) }));
  const reads = task !== "image" && task !== "listen";
  show("try-text-part", reads);
  show("try-question-part", task === "span");
  show("try-picture-part", task === "image");
  show("try-sound-part", task === "listen");
  show("try-button", reads);
  byId<HTMLTextAreaElement>("try-text").required = reads;
  byId<HTMLInputElement>("try-question").required = task === "span";
  say("try-text-name", task === "span" ? t("trained.document") : t("trained.text"));
  say("try-button", task === "span" ? t("trained.find") : t("trained.label"));
  say("try-state", "");
  clearResult();
  void paintShelf();
}

function clearResult(): void {
  say("try-base", "");
  byId("try-result").replaceChildren();
}

/** The kept models but for the one that is shown. */
async function paintShelf(): Promise<void> {
  const kept = (await keptModels()).filter((k) => !shown || k.job !== shown.job || k.id !== shown.id);
  show("shelf", kept.length > 0);
  byId("shelf-list").replaceChildren(...kept.map(row));
}

function row(k: KeptModel): HTMLElement {
  const act = (text: Told, run: () => void) => {
    const button = element("button", { type: "button", class: "quiet small", "aria-label": t("shelf.which", { act: text, job: k.job }) }, text);
    button.addEventListener("click", run);
    return button;
  };
  return element("li", {}, element("span", {}, element("bdi", { class: "name" }, k.job), t("shelf.of", { rounds: rounds(k.model.version), date: date(k.at) })),
    element("span", { class: "buttons" },
      ...(k.model.kept ? [act(t("shelf.try"), () => void open(k))] : []),
      act(t("shelf.download"), () => download(k.model)),
      act(t("shelf.forget"), () => void forgetModel(k).then(paintShelf))));
}

async function open(k: KeptModel): Promise<void> {
  say("shelf-state", t("shelf.opening"));
  byId("shelf-state").classList.remove("failed");
  try {
    const edge = await loadClient();
    await edge.open(k.model);
    say("shelf-state", "");
    offer(t("trained.kept.title"), { job: k.job, id: k.id, task: k.task ?? "classify", sound: k.sound, model: k.model, predict: (input, trial) => edge.predict(input, trial) });
    say("trained-kept", "");
    show("forget", true);
    byId("trained").focus();
  } catch (error) {
    say("shelf-state", t("shelf.closed", { why: message(error) }));
    byId("shelf-state").classList.add("failed");
  }
}

async function predict(input: Input): Promise<void> {
  if (!shown) return;
  const { task } = shown;
  const button = byId<HTMLButtonElement>("try-button");
  button.disabled = true;
  say("try-state", t("trained.reading"));
  clearResult();
  try {
    const found = await shown.predict(input), alone = await shown.predict(input, { untrained: true });
    say("try-state", verdict(task, found));
    byId("try-state").classList.remove("failed");
    say("try-base", before(task, alone));
    if (task !== "span") byId("try-result").replaceChildren(heads(), ...(task === "tag" ? found : found.slice(0, most)).map((p, i) => bar(p, baseOf(p, alone, i), undecided(alone))));
  } catch (error) {
    say("try-state", message(error));
    byId("try-state").classList.add("failed");
  }
  button.disabled = false;
}

function verdict(task: string, found: Prediction[]): Told {
  const [first] = found;
  if (task === "tag") return t("trained.words", { n: found.length });
  if (task === "span") return first?.label ? t("trained.answer", { label: first.label, share: percent(first.probability) }) : t("trained.no.answer");
  return first ? t("trained.likely", { label: first.label, share: percent(first.probability) }) : t("trained.no.labels");
}

/** What the base said of it: of a word the one at its place, else of the label. */
const baseOf = ({ word, label }: Prediction, alone: Prediction[], i: number) => word === undefined ? alone.find((a) => a.label === label) : alone[i];

/** Whether the base prefers nothing to anything else. */
const undecided = (alone: Prediction[]) => {
  const shares = alone.map((a) => a.probability);
  return shares.length > 1 && Math.max(...shares) - Math.min(...shares) < 1e-6;
};

/** What the base says alone, so that one sees what was gained. */
function before(task: string, alone: Prediction[]): Text {
  const [first] = alone;
  if (undecided(alone)) return t("before.undecided", { share: percent(first?.probability ?? 0) });
  if (task === "tag") return t("before.words");
  if (task === "span") return first?.label ? t("before.answer", { label: first.label, share: percent(first.probability) }) : t("before.no.answer");
  return first ? t("before.label", { label: first.label, share: percent(first.probability) }) : "";
}

const heads = () => element("li", { class: "heads soft small" }, element("span", {}), element("span", {}), element("span", {}, t("head.now")), element("span", {}, t("head.before")));

function bar({ word, label, probability }: Prediction, base: Prediction | undefined, alike: boolean): HTMLElement {
  const meter = element("meter", { max: "1", "aria-hidden": "true" });
  meter.value = probability;
  return element("li", {}, element("bdi", {}, ...(word ? [element("b", {}, word), ` ${label}`] : [label])), meter, element("span", {}, percent(probability)),
    element("span", { class: "soft" }, ...(base ? [...(word && !alike ? [`${base.label} `] : []), percent(base.probability)] : [])));
}

/** Shows a picked picture, and what the model says of it. */
async function tryPicture(picture: File): Promise<void> {
  const canvas = byId<HTMLCanvasElement>("try-shown");
  const bitmap = await createImageBitmap(picture).catch(() => undefined);
  canvas.hidden = !bitmap;
  if (!bitmap) {
    say("try-state", t("trained.unopened", { file: picture.name }));
    byId("try-state").classList.add("failed");
    clearResult();
    return;
  }
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0);
  bitmap.close();
  await predict({ picture });
}

/** Shows a recording, and what the model says of it. */
async function tryRecording(recording: Blob): Promise<void> {
  byId("try-heard").replaceChildren();
  await predict({ recording });
  if (!byId("try-state").classList.contains("failed")) byId("try-heard").replaceChildren(await soundOf(recording));
}

async function trySaying(): Promise<void> {
  byId("try-heard").replaceChildren();
  clearResult();
  try {
    await tryRecording(await listenOnce(shown?.sound, (text) => {
      say("try-state", text);
      byId("try-state").classList.remove("failed");
    }));
  } catch (error) {
    say("try-state", message(error));
    byId("try-state").classList.add("failed");
  }
}

function download(model: Model): void {
  const address = URL.createObjectURL(new Blob([model.archive as Uint8Array<ArrayBuffer>], { type: "application/zip" }));
  element("a", { href: address, download: `adapter-rank-${model.rank}.zip` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

byId("archive").addEventListener("click", () => { if (shown) download(shown.model); });
byId("forget").addEventListener("click", () => {
  if (!shown) return;
  const of = shown;
  void forgetModel(of).then(() => {
    show("forget", false);
    say("trained-kept", t("trained.forgotten"));
  });
});
byId("try").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId<HTMLTextAreaElement>("try-text").value.trim(), question = byId<HTMLInputElement>("try-question").value.trim();
  if (text && shown) void predict(shown.task === "span" ? { text, question } : text);
});
const sound = byId<HTMLInputElement>("try-sound");
sound.addEventListener("click", () => { sound.value = ""; });
sound.addEventListener("change", () => {
  const [recording] = sound.files ?? [];
  if (recording) void tryRecording(recording);
});
byId("try-say").addEventListener("click", () => void trySaying());
const picked = byId<HTMLInputElement>("try-picture");
picked.addEventListener("click", () => { picked.value = ""; });
picked.addEventListener("change", () => {
  const [picture] = picked.files ?? [];
  if (picture) void tryPicture(picture);
});
