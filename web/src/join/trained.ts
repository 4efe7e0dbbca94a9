// The models that jobs have come to: the one that this page helped to make, and
// those that this browser has kept. Each is tried, taken along, forgotten. A part of the
// script that is fetched where there is one.
import type { Edge, Input, Model, Prediction, Trial } from "../../edge/src/index.js";
import { byId, element, message, say, show } from "../dom.js";
import { date, t, type Text, type Told } from "../language/language.js";
import { bytes, percent, rounds } from "./amounts.js";
import { cutText, listenOnce, soundOf } from "./hearing.js";
import { letGo } from "./keep.js";
import { forgetModel, keptModels, type KeptModel } from "./shelf.js";

const most = 5; // labels shown

type Predict = (input: Input, trial?: Trial) => Promise<Prediction[]>;

let shown: KeptModel & { predict: Predict } | undefined;
let loadClient: () => Promise<Edge>;
let asking: AbortController | undefined; // a text that is being written

/** Lists what is kept; load fetches the client where one of them is tried. */
export function offerShelf(load: () => Promise<Edge>): void {
  loadClient = load;
  void paintShelf();
}

/** Offers the model of this page's participation, and says whether it is kept. */
export function offerModel(of: KeptModel, predict: Predict, kept: Promise<boolean>): void {
  offer(t("trained.title"), { ...of, predict });
  say("trained-kept", "");
  void kept.then((is) => {
    say("trained-kept", is ? t("trained.kept") : t("trained.unkept"));
    show("forget", is);
  });
}

/** What a person gives to a task's model, and whether it answers with one text. */
const asks = { span: "question", answer: "question", image: "picture", listen: "sound", transcribe: "sound" } as Record<string, string | undefined>;
const answers = new Set(["span", "answer", "transcribe", "causal"]);
const writes = new Set(["answer", "causal"]);

function offer(title: Told, of: NonNullable<typeof shown>): void {
  asking?.abort();
  asking = undefined;
  byId<HTMLButtonElement>("try-button").disabled = false;
  show("try-stop", false);
  const { job, model } = shown = of, task = taskOf(of);
  show("trained", true);
  say("trained-title", title);
  const after = { job, rounds: rounds(model.version) };
  say("trained-what", model.rank ? t("trained.what", { ...after, rank: model.rank }) : t("trained.head", after));
  say("archive", t("trained.download", { size: bytes(model.archive.length) }));
  const given = asks[task], reads = given === undefined || given === "question";
  show("try-text-part", reads);
  show("try-question-part", given === "question");
  show("try-picture-part", given === "picture");
  show("try-sound-part", given === "sound");
  show("try-button", reads);
  byId<HTMLTextAreaElement>("try-text").required = reads;
  byId<HTMLInputElement>("try-question").required = given === "question";
  say("try-text-name", given === "question" ? t("trained.document") : task === "causal" ? t("trained.begin") : t("trained.text"));
  say("try-button", given === "question" ? t("trained.find") : task === "causal" ? t("trained.go.on") : t("trained.label"));
  say("try-state", "");
  clearResult();
  void paintShelf();
}

/** What a model of a page that knew one task was kept as. */
const taskOf = (of: KeptModel): string => of.task ?? "classify";

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
      act(t("shelf.forget"), () => void forgetModel(k).then(paintShelf).then(letGo))));
}

async function open(k: KeptModel): Promise<void> {
  say("shelf-state", t("shelf.opening"));
  byId("shelf-state").classList.remove("failed");
  try {
    const edge = await loadClient();
    await edge.open(k.model);
    say("shelf-state", "");
    offer(t("trained.kept.title"), { ...k, predict: (input, trial) => edge.predict(input, trial) });
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
  const { predict: ask } = shown, task = taskOf(shown);
  asking?.abort();
  const { signal } = asking = new AbortController();
  const button = byId<HTMLButtonElement>("try-button");
  button.disabled = true;
  show("try-stop", writes.has(task));
  say("try-state", writes.has(task) ? t("trained.writing") : t("trained.reading"));
  byId("try-state").classList.remove("failed");
  clearResult();
  try {
    const now = writes.has(task) ? written(t("written.now")) : undefined;
    const found = await ask(input, { onText: now, signal });
    now?.(found[0]?.label ?? "");
    const then = writes.has(task) ? written(t("written.before")) : undefined;
    const alone = await ask(input, { untrained: true, onText: then, signal });
    then?.(alone[0]?.label ?? "");
    say("try-state", verdict(task, found));
    say("try-base", before(task, alone));
    if (task === "answer") byId("try-result").replaceChildren(); // both stand above it, with their shares
    if (!answers.has(task)) byId("try-result").replaceChildren(heads(), ...(task === "tag" ? found : found.slice(0, most)).map((p, i) => bar(p, baseOf(p, alone, i), undecided(alone))));
  } catch (error) {
    if (asking?.signal !== signal) return; // another question has followed, or another model
    say("try-state", signal.aborted ? t("trained.stopped") : message(error));
    byId("try-state").classList.toggle("failed", !signal.aborted);
  }
  button.disabled = false;
  show("try-stop", false);
  if (signal.aborted) button.focus(); // the one that stopped it is gone
}

/** A place for a text that is being written; what writes it there. */
function written(name: Told): (text: string) => void {
  const at = element("bdi", { class: "written" });
  byId("try-result").append(element("li", { class: "text" }, element("b", {}, name), at));
  return (text) => { at.replaceChildren(element("span", {}, text || t("written.nothing"))); };
}

function verdict(task: string, found: Prediction[]): Told {
  const [first] = found;
  if (task === "tag") return t("trained.words", { n: found.length });
  if (task === "causal") return t("trained.written");
  if (answers.has(task)) return first?.label ? t("trained.answer", { label: first.label, share: percent(first.probability) }) : task === "transcribe" ? t("trained.no.words") : t("trained.no.answer");
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
  if (task === "causal") return "";
  if (undecided(alone)) return t("before.undecided", { share: percent(first?.probability ?? 0) });
  if (task === "tag") return t("before.words");
  if (answers.has(task)) return first?.label ? t("before.answer", { label: first.label, share: percent(first.probability) }) : task === "transcribe" ? t("before.no.words") : t("before.no.answer");
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
  if (byId("try-state").classList.contains("failed")) return;
  const { shown: heard, lasts } = await soundOf(recording);
  byId("try-heard").replaceChildren(heard, element("span", { class: "small" }, cutText(shown?.sound, lasts)));
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
    return letGo();
  });
});
byId("try-stop").addEventListener("click", () => asking?.abort());
byId("try").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = byId<HTMLTextAreaElement>("try-text").value.trim(), question = byId<HTMLInputElement>("try-question").value.trim();
  if (text && shown) void predict(asks[taskOf(shown)] === "question" ? { text, question } : text);
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
