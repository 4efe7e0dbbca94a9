import { Participation, type ParticipationOptions } from "./participation.js";
import { PolicyRefusal, StarlingError } from "./errors.js";
import { sourceOf, type Example } from "./edge.js";
import type { Source } from "./protocol.js";

/** Examples of your own, a file that the user has chosen, or any source. */
export type Data = Iterable<Example> | Blob | Source;

export interface StartOptions extends Omit<ParticipationOptions, "source"> {
  data: Data;
}

/**
 * Takes part until the job is over: yields the participation, with the model where the job offers one. Rejects with a
 * StarlingError, whose code says why (of a job outside the owner's policy with a PolicyRefusal), or with the signal's reason.
 */
export async function join({ data, ...options }: StartOptions = {} as StartOptions): Promise<Participation> {
  options.signal?.throwIfAborted();
  const source = await sourceFrom(data);
  const part = new Participation({ ...options, source });
  part.addEventListener("standing", ({ detail }) => {
    if (detail === "refused") part.stop(); // nobody is here who could accept
  });
  try {
    return await part.finished;
  } catch (error) {
    throw part.error instanceof PolicyRefusal && !options.signal?.aborted ? part.error : error;
  }
}

async function sourceFrom(data: Data): Promise<Source> {
  if (typeof data !== "object" || data === null) throw new StarlingError("options", "data is missing: give examples, a File, or a source");
  if (data instanceof Blob) {
    const { name } = data as Partial<File>;
    if (!name) throw new StarlingError("data", "a Blob has no name whose end would say what it holds: make a File of it, or a source");
    return { fileName: name, data: new Uint8Array(await data.arrayBuffer()) };
  }
  return Symbol.iterator in data ? sourceOf(data) : data;
}
