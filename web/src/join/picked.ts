// Picked pictures and recordings: their labels are the folders that they lie in, or one
// that is chosen for all of them. Each picture is opened once before it is taken, and each
// recording by the preview: none is left out in silence.
import { byId, element, say, show, Sorry } from "../dom.js";
import { t, type Text } from "../language/language.js";

/** One that was picked, or recorded. */
export interface Labelled {
  label: string;
  file: Blob;
  name: string;
  user?: string;
}

/** What a job's files are where each is an example by itself. */
export interface Sort {
  kind: "pictures" | "recordings";
  is(file: File): boolean;
  /** Whether this browser opens it. */
  opens(file: File): Promise<boolean>;
}

/** Sorts by the kind of data, as in TaskWords. */
export const sorts: Record<string, Sort> = {
  pictures: {
    kind: "pictures",
    is: (file) => file.type.startsWith("image/"),
    async opens(file) {
      const bitmap = await createImageBitmap(file).catch(() => undefined);
      bitmap?.close();
      return bitmap !== undefined;
    },
  },
  recordings: {
    kind: "recordings",
    // A data set of words has a folder of noise beside them.
    is: (file) => /\.(wav|wave|flac)$/i.test(file.name) && place(file) !== "_background_noise_",
    opens: async () => true, // the device itself decodes it
  },
};

/** Where a file lies below the picked folder; "" for one that was picked by itself. */
const place = (file: File) => file.webkitRelativePath.split("/").slice(1, -1).at(-1) ?? "";

/** Refuses what the browser does not open, by its name. */
async function opened(sort: Sort, files: File[], told: (text: Text) => void): Promise<void> {
  for (const [i, file] of files.entries()) {
    told(t(`data.reading.${sort.kind}`, { i: i + 1, n: files.length }));
    if (!(await sort.opens(file))) throw new Sorry(t("data.unopened", { file: file.name }));
  }
}

export interface Chosen {
  /** The folder that they lie in; "" where they were picked by themselves. */
  folder: string;
  items: Labelled[];
  /** Files of another kind. */
  others: number;
}

/**
 * Gives picked files with their labels, asking for one where they do not lie in
 * folders; undefined where others were picked before an answer.
 */
export async function labelled(sort: Sort, files: File[], labels: string[], told: (text: Text) => void): Promise<Chosen | undefined> {
  const all = files.filter(sort.is);
  await opened(sort, all, told);
  const folder = all[0]?.webkitRelativePath.split("/")[0] ?? "";
  const inFolders = all.filter((f) => place(f) !== "");
  const others = files.length - all.length;
  const of = (file: File, label: string): Labelled => ({ label, file, name: file.webkitRelativePath || file.name });
  if (inFolders.length === all.length) return { folder, items: all.map((f) => of(f, place(f))), others };
  if (inFolders.length) {
    throw new Sorry(t(`data.no.folder.${sort.kind}`, { n: all.length - inFolders.length }));
  }
  const label = await ask(sort, all.length, labels, told);
  return label === undefined ? undefined : { folder, items: all.map((f) => of(f, label)), others };
}

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
