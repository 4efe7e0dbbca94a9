// Picked pictures: their labels are the folders that they lie in, or one that is chosen
// for all of them. Each is opened once before it is taken: none is left out in silence.
import type { LabelledPicture } from "../../edge/src/index.js";
import { byId, element, say, show } from "../dom.js";
import { count } from "../format.js";

/** Where a picture lies below the picked folder; "" for one that was picked by itself. */
const place = (file: File) => file.webkitRelativePath.split("/").slice(1, -1).at(-1) ?? "";

const isPicture = (file: File) => file.type.startsWith("image/");

/** Whether files were picked to be read as pictures, and not as a table. */
export const arePictures = (files: File[]): boolean => files.some(isPicture);

/** Refuses what the browser does not open as a picture, by its name. */
async function opened(files: File[], told: (text: string) => void): Promise<void> {
  for (const [i, file] of files.entries()) {
    told(`Reading picture ${i + 1} of ${files.length}…`);
    const bitmap = await createImageBitmap(file).catch(() => undefined);
    if (!bitmap) throw new Error(`this browser does not read ${file.name} as a picture: leave it out, or save it as PNG or JPEG`);
    bitmap.close();
  }
}

export interface Chosen {
  /** The folder that they lie in; "" where they were picked by themselves. */
  folder: string;
  pictures: LabelledPicture[];
  /** Files that are no pictures. */
  others: number;
}

/**
 * Gives picked pictures with their labels, asking for one where they do not lie in
 * folders; undefined where others were picked before an answer.
 */
export async function labelled(files: File[], labels: string[], told: (text: string) => void): Promise<Chosen | undefined> {
  const all = files.filter(isPicture);
  await opened(all, told);
  const folder = all[0]?.webkitRelativePath.split("/")[0] ?? "";
  const inFolders = all.filter((f) => place(f) !== "");
  const others = files.length - all.length;
  const of = (file: File, label: string): LabelledPicture => ({ label, picture: file, name: file.webkitRelativePath || file.name });
  if (inFolders.length === all.length) return { folder, pictures: all.map((f) => of(f, place(f))), others };
  if (inFolders.length) {
    throw new Error(`${count(all.length - inFolders.length, "picture lies", "pictures lie")} in no folder of a class: put each in one that is named by its class`);
  }
  const label = await ask(all.length, labels, told);
  return label === undefined ? undefined : { folder, pictures: all.map((f) => of(f, label)), others };
}

let asking: AbortController | undefined;

/** Asks what pictures show; undefined where something else was picked before an answer. */
function ask(n: number, labels: string[], told: (text: string) => void): Promise<string | undefined> {
  forgetQuestion();
  const { signal } = asking = new AbortController();
  told("");
  say("naming-text", `${count(n, "picture")}: what ${n === 1 ? "does it" : "do they"} show?`);
  const select = byId<HTMLSelectElement>("naming-label");
  select.replaceChildren(element("option", { value: "" }, "Choose a class"), ...labels.map((l) => element("option", { value: l }, l)));
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
