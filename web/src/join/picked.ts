// Picked pictures and recordings: their labels are the folders that they are in, or one
// that is chosen for all of them. Each picture is opened once before it is taken, and each
// recording by the preview: none is left out in silence.
import { byId, element, say, show, Sorry } from "../dom.js";
import { t, type Text } from "../language/language.js";
import { bytes } from "./amounts.js";
import { encodeWAV } from "./wav.js";

/** One that was picked, or recorded. */
export interface Labelled {
  label: string;
  file: Blob;
  /** What is said in it, of a job that transcribes. */
  text?: string;
  name: string;
  user?: string;
}

/** What a job's files are where each is an example by itself. */
export interface Sort {
  kind: "pictures" | "recordings";
  /** Whether each comes with what is said in it, in place of a label. */
  spoken?: boolean;
  is(file: File): boolean;
  /** What of it the device reads; undefined where this browser cannot open it. */
  opens(file: File): Promise<Blob | undefined>;
  /** What is said where it cannot. */
  unopened: "data.unopened" | "data.undecoded";
}

const recordings: Sort = {
  kind: "recordings",
  // A data set of words has a folder of noise beside them.
  is: (file) => /\.(wav|wave|flac|ogg|oga|opus|mp3|m4a)$/i.test(file.name) && place(file) !== "_background_noise_",
  // The device itself decodes WAV and FLAC, and is given WAV of the others.
  opens: async (file) => /\.(wav|wave|flac)$/i.test(file.name) ? file : decoded(file).catch(() => undefined),
  unopened: "data.undecoded",
};

/** Sorts by the kind of data, as in TaskWords. */
export const sorts: Record<string, Sort> = {
  pictures: {
    kind: "pictures",
    is: (file) => file.type.startsWith("image/"),
    async opens(file) {
      const bitmap = await createImageBitmap(file).catch(() => undefined);
      bitmap?.close();
      return bitmap && file;
    },
    unopened: "data.unopened",
  },
  recordings,
  transcripts: { ...recordings, spoken: true },
};

/** Where a file is below the picked folder; "" for one that was picked by itself. */
const place = (file: File) => file.webkitRelativePath.split("/").slice(1, -1).at(-1) ?? "";

/** A recording as the browser decodes it, brought to one channel, as WAV. */
async function decoded(file: File): Promise<Blob> {
  const buffer = await new OfflineAudioContext(1, 1, decodedRate).decodeAudioData(await file.arrayBuffer());
  const mean = new Float32Array(buffer.length);
  for (let c = 0; c < buffer.numberOfChannels; c++) {
    buffer.getChannelData(c).forEach((v, i) => { mean[i] = (mean[i] ?? 0) + v / buffer.numberOfChannels; });
  }
  return new Blob([encodeWAV(mean, buffer.sampleRate)], { type: "audio/wav" });
}

/** Samples a second to which the browser decodes: none that a model wants is above half of it. */
const decodedRate = 48_000;

/** Opens each file, or refuses by its name what the browser cannot open. */
async function opened(sort: Sort, files: File[], told: (text: Text) => void): Promise<Map<File, Blob>> {
  const read = new Map<File, Blob>();
  for (const [i, file] of files.entries()) {
    told(t(`data.reading.${sort.kind}`, { i: i + 1, n: files.length }));
    const blob = await sort.opens(file);
    if (!blob) throw new Sorry(t(sort.unopened, { file: file.name }));
    read.set(file, blob);
  }
  return read;
}

export interface Chosen {
  /** The folder that they are in; "" where they were picked by themselves. */
  folder: string;
  items: Labelled[];
  /** Files of another kind. */
  others: number;
}

/**
 * Gives picked files with their labels, asking for one where they are not in
 * folders; undefined where others were picked before an answer.
 */
export async function labelled(sort: Sort, files: File[], labels: string[], told: (text: Text) => void): Promise<Chosen | undefined> {
  const all = files.filter(sort.is);
  const read = await opened(sort, all, told);
  const folder = all[0]?.webkitRelativePath.split("/")[0] ?? "";
  const inFolders = all.filter((f) => place(f) !== "");
  const others = files.length - all.length;
  const of = (file: File, label: string): Labelled => ({ label, file: read.get(file) ?? file, name: file.webkitRelativePath || file.name });
  if (sort.spoken) {
    const told = files.filter((f) => /\.(txt|jsonl|ndjson)$/i.test(f.name)), texts = all.length ? await spokenTexts(told) : new Map<string, string>();
    const items = all.map((f) => ({ ...of(f, ""), text: texts.get(f.name) ?? texts.get(stem(f.name)) ?? "" }));
    const silent = items.find((f) => !f.text);
    if (silent) throw new Sorry(t("data.unsaid", { file: silent.name }));
    return { folder, items, others: others - told.length };
  }
  if (inFolders.length === all.length) return { folder, items: all.map((f) => of(f, place(f))), others };
  if (inFolders.length) {
    throw new Sorry(t(`data.no.folder.${sort.kind}`, { n: all.length - inFolders.length }));
  }
  const label = await ask(sort, all.length, labels, told);
  return label === undefined ? undefined : { folder, items: all.map((f) => of(f, label)), others };
}

/** A file's name without its end. */
const stem = (name: string) => name.replace(/\.[^.]*$/, "");

/** What is said in recordings, by their names: of JSON Lines with "audio" and "text", or of a text beside each, by that one's name without its end. */
async function spokenTexts(files: File[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const file of files) {
    if (file.size > mostTexts) throw new Sorry(t("data.too.large", { file: file.name, most: bytes(mostTexts) }));
    const text = await file.text();
    if (/\.txt$/i.test(file.name)) {
      texts.set(stem(file.name), text.trim());
      continue;
    }
    for (const [i, line] of text.split(/\r?\n/).entries()) {
      if (!line.trim()) continue;
      const said = object(line);
      if (typeof said?.audio !== "string" || typeof said.text !== "string") throw new Sorry(t("data.no.text", { file: file.name, line: String(i + 1) }));
      texts.set(said.audio.split("/").at(-1) ?? "", said.text.trim());
    }
  }
  return texts;
}

/** A line's object; undefined where it is none. */
function object(line: string): { audio?: unknown; text?: unknown } | null | undefined {
  try {
    return JSON.parse(line) as ReturnType<typeof object>;
  } catch {
    return undefined;
  }
}

const mostTexts = 16 << 20; // bytes of a file that says what is said

let asking: AbortController | undefined;

/** Asks what files are of; undefined where something else was picked before an answer. */
function ask(sort: Sort, n: number, labels: string[], told: (text: Text) => void): Promise<string | undefined> {
  forgetQuestion();
  const { signal } = asking = new AbortController();
  told("");
  say("naming-text", t(`data.naming.${sort.kind}`, { n }));
  const select = byId<HTMLSelectElement>("naming-label");
  select.replaceChildren(element("option", { value: "" }, t("data.naming.choose")), ...labels.map((l) => element("option", { value: l }, l)));
  show("naming", true);
  byId("naming").scrollIntoView({ block: "center" }); // not below the bar with Join
  select.focus({ preventScroll: true });
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => { show("naming", false); resolve(undefined); });
    byId("naming-form").addEventListener("submit", (event) => {
      event.preventDefault();
      if (!select.value) return;
      resolve(select.value);
      forgetQuestion();
    }, { signal });
  });
}

/** Ends a question that was not answered. */
export function forgetQuestion(): void {
  asking?.abort();
  asking = undefined;
}
