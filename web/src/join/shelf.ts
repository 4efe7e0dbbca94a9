// The models that jobs have ended with, kept in this browser until their owner
// forgets them: a reload after the end loses none.
import type { Model } from "../../edge/src/index.js";
import { table } from "./table.js";

export interface KeptModel {
  /** Name of its job. */
  job: string;
  /** Its task; left out by pages that knew one, "classify". */
  task?: string;
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

/** Keeps a job's model in place of an earlier one of that name; whether the browser took it. */
export async function keepModel(kept: KeptModel): Promise<boolean> {
  try {
    await store("readwrite", (s) => s.put(kept, kept.job));
    for (const old of (await keptModels()).slice(most)) await forgetModel(old.job);
    return true;
  } catch {
    return false;
  }
}

export const forgetModel = (job: string): Promise<unknown> => store("readwrite", (s) => s.delete(job)).catch(() => undefined);
