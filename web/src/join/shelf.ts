// The models that jobs have ended with, kept in this browser until their owner
// forgets them: a reload after the end loses none.
import type { Model } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { table } from "./table.js";

export interface KeptModel {
  /** Name of its job. */
  job: string;
  /** About.id of its job, which it is kept under; left out by pages that went by the name. */
  id?: string;
  /** Its task; left out by pages that knew one, "classify". */
  task?: string;
  /** What its base hears of a recording, where it reads those. */
  sound?: About["sound"];
  /** When it was kept, ms since 1970. */
  at: number;
  model: Model;
}

const most = 4; // models; the oldest goes first

const store = table("starling-models", "models");

/** What is kept, the latest first; nothing where the browser keeps nothing. */
export async function keptModels(): Promise<KeptModel[]> {
  try {
    return (await store<KeptModel[]>("readonly", (s) => s.getAll())).sort((a, b) => b.at - a.at);
  } catch {
    return [];
  }
}

/** What a model is kept under. */
const keyOf = (kept: Pick<KeptModel, "id" | "job">) => kept.id ?? kept.job;

/** Keeps a job's model in place of an earlier one of that job; whether the browser took it. */
export async function keepModel(kept: KeptModel): Promise<boolean> {
  try {
    await store("readwrite", (s) => s.put(kept, keyOf(kept)));
    for (const old of (await keptModels()).slice(most)) await forgetModel(old);
    return true;
  } catch {
    return false;
  }
}

export const forgetModel = (kept: Pick<KeptModel, "id" | "job">): Promise<unknown> => store("readwrite", (s) => s.delete(keyOf(kept))).catch(() => undefined);
