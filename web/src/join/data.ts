// The visitor's data: picked, looked at, held to the job's classes. It stays in this page.
import { mostData, type Edge, type FileSource, type Preview, type Row, type Source } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { brief, byId, element, message, say, show, Sorry } from "../dom.js";
import { listed, t, type Text, type Told } from "../language/language.js";
import { sampleLabels } from "../sample.js";
import { columnsOf, guess, spoken } from "./file.js";
import { bytes } from "./amounts.js";
import { checkLengths, forgetClips, loadSound, offerMicrophone, waveform } from "./hearing.js";
import { forgetQuestion, labelled, sorts, type Labelled, type Sort } from "./picked.js";
import { counted, holds, wordsOf } from "./tasks.js";

interface Surroundings {
  about(): About | undefined;
  client(): Promise<Edge>;
  /** Called where source or preview has changed. */
  changed(): void;
}

/** What was chosen; undefined before, and while what is wrong with it is said. */
export const data: { source?: Source; preview?: Preview } = {};

let page: Surroundings;
let file: File | undefined;
let items: Labelled[] = []; // pictures or recordings, of several picks
let clips: Labelled[] = []; // that were recorded here
let folder = ""; // that they lie in
let emptied = 0; // how often the items were given up: what was read for those before is of no use
let written: { forgetWritten(): void } | undefined; // what was typed
let turn = 0; // a choice that another one has followed has no say any more

export function offerData(surroundings: Surroundings): void {
  page = surroundings;
  for (const id of ["file", "folder"]) {
    const input = byId<HTMLInputElement>(id);
    input.addEventListener("click", () => { input.value = ""; }); // the same file again, edited, is a change
    input.addEventListener("change", () => {
      const files = [...input.files ?? []];
      if (files.length) void picked(files);
    });
  }
  for (const id of ["label-column", "text-column"]) {
    byId(id).addEventListener("change", () => void look(file, async (table) => ({
      fileName: table.name, data: await whole(table), ...chosenColumns(),
    })));
  }
  byId("sample").addEventListener("click", () => void sampled());
  byId("write").addEventListener("click", () => void writing());
  const section = byId("choosing");
  section.addEventListener("dragover", (event) => event.preventDefault()); // it can be dropped here
  section.addEventListener("drop", (event) => {
    event.preventDefault();
    const files = [...event.dataTransfer?.files ?? []], text = event.dataTransfer?.getData("text/plain");
    if (files.length) void picked(files);
    else if (text) void writing(text);
  });
  document.addEventListener("paste", (event) => {
    if (section.hidden || (event.target as Element).closest?.("input, textarea")) return;
    const files = [...event.clipboardData?.files ?? []], text = event.clipboardData?.getData("text/plain");
    if (text && writes()) void writing(text); // a spreadsheet copies a picture of its cells, too
    else if (files.length) void picked(files);
  });
  byId("template").addEventListener("click", template);
  byId("pictures-forget").addEventListener("click", forget);
  byId("microphone-open").addEventListener("click", () => {
    const about = page.about();
    if (about) void offerMicrophone(about, (recorded) => {
      clips = recorded;
      say("data-state", "");
      void look(clips, async () => chosen(about));
    });
  });
}

/** What a job's files are, where each is an example by itself. */
const sortOf = (about: About): Sort | undefined => sorts[wordsOf(about)?.kind ?? ""];

/** Whether the job's data are texts that somebody can type. */
function writes(): boolean {
  const about = page.about(), kind = about && wordsOf(about)?.kind;
  return kind === "texts" || kind === "unlabelled";
}

/** Opens the place to type and paste in, and adds a text that was pasted or dropped elsewhere. */
async function writing(text = ""): Promise<void> {
  const about = page.about();
  if (!about || !writes()) return;
  const { writing: of } = await import("./later.js");
  written = of;
  of.write(about, wordsOf(about)?.kind === "unlabelled", (source) => {
    show("columns", false);
    say("data-state", "");
    void look(source ?? {}, async () => source);
  });
  if (text) of.add(text);
}

/** Fits the questions to the job's task. */
export function describeData(about: About): void {
  const words = wordsOf(about);
  if (!words) return;
  const sort = sortOf(about);
  byId<HTMLInputElement>("file").accept = words.accept;
  byId<HTMLInputElement>("file").multiple = sort !== undefined;
  say("file-name", sort ? t(`data.${sort.kind}`) : t("data.file"));
  show("folder-button", sort !== undefined && "webkitdirectory" in HTMLInputElement.prototype);
  show("microphone-open", sort?.kind === "recordings");
  say("formats-text", words.formats);
  show("template", words.template !== undefined);
  say("head-label", words.head[0] ?? "");
  say("head-text", words.head[1]);
  show("write", writes());
  show("sample", about.sample !== undefined || sampleOf(about) !== undefined);
}

/** The kind of the built-in sample that has no class that the job has not. */
function sampleOf(about: About): keyof typeof sampleLabels | undefined {
  const kind = wordsOf(about)?.kind;
  if (kind === "unlabelled") return "texts";
  if (kind !== "texts" && kind !== "pictures" && kind !== "recordings") return undefined;
  return sampleLabels[kind].every((l) => about.labels.includes(l)) ? kind : undefined;
}

/** What people have and no device reads, and what is said of it. */
const unread: [RegExp, "data.document" | "data.sheet" | "data.heic"][] = [
  [/\.(pdf|docx?|odt|rtf|pages|epub)$/i, "data.document"], [/\.(xlsx?|ods|numbers)$/i, "data.sheet"], [/\.(heic|heif)$/i, "data.heic"],
];

async function picked(files: File[]): Promise<void> {
  const about = page.about();
  const [first] = files;
  if (!about || !first) return;
  written?.forgetWritten();
  const sort = sortOf(about), other = files.map((f) => f.name).find((name) => unread.some(([ends]) => ends.test(name)));
  if (other) return look(other, async (name) => { throw new Sorry(t(unread.find(([ends]) => ends.test(name))![1], { file: name })); });
  // One table of pixels is a file, too.
  if (sort && (files.length > 1 || files.some(sort.is) || sort.kind === "recordings")) return pickedItems(sort, files, about);
  items = [];
  emptied++;
  await look(first, async (table, still) => {
    file = table;
    say("data-state", t("data.reading", { file: table.name }));
    const kind = wordsOf(about)?.kind;
    const found = kind === "texts" || kind === "unlabelled" ? await columnsOf(table, table.name) : [];
    const columns = kind === "unlabelled" && spoken(found) ? [] : found;
    const bytes = await whole(table);
    if (!still()) return undefined;
    const { label, text } = guess(columns);
    choose("label-column", columns, label);
    choose("text-column", columns, text);
    show("columns", columns.length > 1);
    show("label-column-part", kind === "texts");
    return { fileName: table.name, data: bytes, ...chosenColumns() };
  });
}

async function whole(table: File): Promise<Uint8Array> {
  if (table.size > mostData) throw new Sorry(t("data.too.large", { file: table.name, most: bytes(mostData) }));
  return new Uint8Array(await table.arrayBuffer());
}

/** Adds to those that were picked before: files of one class are picked at a time. */
async function pickedItems(sort: Sort, files: File[], about: About): Promise<void> {
  const mine = emptied;
  await look(files, async () => {
    const found = await labelled(sort, files, about.labels, (text) => say("data-state", text));
    if (!found || mine !== emptied) return undefined;
    if (!found.items.length) throw new Sorry(t(`data.no.${sort.kind}`));
    if (found.others) say("left-out", t(`data.left.out.${sort.kind}`, { n: found.others }));
    items = [...items, ...found.items];
    folder = found.folder;
    say("pictures-forget", t(`data.others.${sort.kind}`));
    show("pictures-forget", true);
    return chosen(about);
  });
}

/** All that was picked and recorded; undefined where that is nothing. */
function chosen(about: About): Source | undefined {
  const all = [...items, ...clips], sort = sortOf(about);
  if (!sort || !all.length) return undefined;
  const fileName = folder || sort.kind; // what their account goes by
  if (sort.kind === "recordings") return { fileName, recordings: all.map(({ file: recording, ...of }) => ({ ...of, recording })) };
  return { fileName, pictures: all.map(({ file: picture, ...of }) => ({ ...of, picture })) };
}

function choose(id: string, columns: string[], guessed: string): void {
  const select = byId<HTMLSelectElement>(id);
  select.replaceChildren(...columns.map((c) => element("option", { value: c }, c)));
  select.value = guessed;
}

function chosenColumns(): Pick<FileSource, "textColumn" | "labelColumn" | "unlabelled"> {
  const about = page.about();
  const unlabelled = about && wordsOf(about)?.kind === "unlabelled";
  return {
    textColumn: byId<HTMLSelectElement>("text-column").value || undefined,
    labelColumn: unlabelled ? undefined : byId<HTMLSelectElement>("label-column").value || undefined,
    unlabelled,
  };
}

/** Reads what was chosen and shows it, or says what is wrong with it. read is told whether nothing else was chosen since. */
async function look<T>(chosen: T | undefined, read: (chosen: T, still: () => boolean) => Promise<Source | undefined>): Promise<void> {
  if (chosen === undefined) return;
  const mine = ++turn;
  forgetQuestion();
  data.source = data.preview = undefined;
  show("preview", false);
  say("left-out", "");
  say("cut", "");
  byId("data-state").classList.remove("failed");
  page.changed();
  try {
    const source = await read(chosen, () => mine === turn);
    if (!source || mine !== turn) return;
    const preview = await (await page.client()).preview(source);
    if (sorts[preview.kind]?.kind === "recordings") await loadSound();
    if (mine !== turn) return;
    paint(source, preview);
    check(source, preview);
    data.source = source;
    data.preview = preview;
  } catch (error) {
    if (mine !== turn) return;
    say("data-state", message(error));
    byId("data-state").classList.add("failed");
  }
  page.changed();
}

/** Refuses data of another task, and labels that are not the job's. */
function check(source: Source, preview: Preview): void {
  const about = page.about();
  const words = about && wordsOf(about);
  if (!about || !words) return;
  if (preview.kind !== words.kind && !words.also?.includes(preview.kind)) throw new Sorry(t("data.other.kind", { found: holds(preview.kind), wanted: holds(words.kind) }));
  checkLengths(about, source, preview);
  const unknown = preview.labels.filter((l) => !about.labels.includes(l.name));
  if (!unknown.length || !about.labels.length) return;
  const said = { n: unknown.length, labels: listed(unknown.slice(0, 3).map((l) => `“${brief(l.name, 60)}”`), ", ") };
  throw new Sorry(words.kind === "texts" ? t("data.unknown.columns", said) : t("data.unknown", said));
}

function paint(source: Source, preview: Preview): void {
  const about = page.about();
  const words = about && wordsOf(about);
  const bare = words !== undefined && !words.head[0];
  byId("head-label").hidden = bare;
  byId("rows").replaceChildren(...preview.rows.map((r) => element("tr", {}, ...(bare ? [] : [element("td", {}, r.label)]), element("td", {}, shown(r)))));
  const found = {
    examples: counted(about, preview.examples),
    where: about && sortOf(about)?.kind === source.fileName ? listed([]) : t("data.in", { file: source.fileName }),
  };
  const labels: Text[] = preview.labels.slice(0, 8).map((l): Told => listed([brief(l.name, 60), ` × ${l.count}`]));
  say("data-state", labels.length ? t("data.found.labels", { ...found, labels: listed([...labels, ...(preview.labels.length > 8 ? ["…"] : [])], ", ") }) : t("data.found", found));
  show("preview", !clips.length || items.length > 0); // clips stand in a list of their own
}

/** A row's text, or its picture or recording as the device reads it. */
function shown({ text, picture, sound, label }: Row): Node | string {
  if (sound) return waveform(sound, label);
  if (!picture) return text;
  const { width, height, pixels } = picture;
  const canvas = element("canvas", { width: String(width), height: String(height), role: "img", "aria-label": t("data.picture.of", { label }) });
  canvas.getContext("2d")?.putImageData(new ImageData(Uint8ClampedArray.from(atob(pixels), (c) => c.charCodeAt(0)), width, height), 0, 0);
  return canvas;
}

function forget(): void {
  items = [];
  emptied++;
  clips = [];
  folder = "";
  forgetClips();
  show("pictures-forget", false);
  say("data-state", "");
  void look([], async () => undefined);
}

/** The operator's file to try, or else one of the built-in ones. */
async function sampled(): Promise<void> {
  const about = page.about();
  const kind = about && sampleOf(about);
  if (!about) return;
  written?.forgetWritten();
  if (about.sample) {
    const mine = ++turn;
    say("data-state", t("data.sample.fetching"));
    try {
      const response = await fetch("v1/sample");
      if (!response.ok) throw new Sorry(t("data.server", { code: String(response.status) }));
      const fetched = new File([await response.arrayBuffer()], about.sample);
      if (mine === turn) await picked([fetched]);
    } catch (error) {
      if (mine === turn) await look(about, () => Promise.reject(error));
    }
  } else if (kind) {
    items = [];
    emptied++;
    clips = [];
    folder = "";
    forgetClips();
    show("pictures-forget", false);
    show("columns", false);
    await look(kind, async () => {
      say("data-state", t("data.sample.making"));
      return { ...await (await page.client()).sample(kind), unlabelled: wordsOf(about)?.kind === "unlabelled" };
    });
  }
}

/** A file in this job's own classes, to fill in. */
function template(): void {
  const about = page.about();
  const made = about && wordsOf(about)?.template?.(about.labels);
  if (!made) return;
  const address = URL.createObjectURL(new Blob([made[1]], { type: "text/plain" }));
  element("a", { href: address, download: made[0] }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
