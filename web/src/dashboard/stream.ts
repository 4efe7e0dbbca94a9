// The coordinator's server-sent events. EventSource cannot send the admin token
// in a header, and an address is no place for it: the stream is read by fetch.

import { whyLost } from "./call.js";

export type Link = "connecting" | "live" | "lost" | "denied";

export interface StreamOptions {
  url: string;
  token: string;
  on(event: string, data: unknown): void;
  /** why is set for "lost" and "denied"; again is when it is tried again, in ms. */
  link(state: Link, why?: string, again?: number): void;
}

/** The stream says something every 10 s: longer silence is a dead network. */
const silence = 25_000;
const firstWait = 500, longestWait = 15_000;
const atOnce = 8; // ms of events without a break

/** Reads until it is refused or aborted; connects again by itself. */
export async function follow({ url, token, on, link }: StreamOptions, signal: AbortSignal): Promise<void> {
  for (let wait = firstWait; !signal.aborted; wait = Math.min(2 * wait, longestWait)) {
    const quiet = new AbortController();
    const end = () => quiet.abort();
    signal.addEventListener("abort", end);
    let timer = setTimeout(end, silence);
    let why = "the coordinator closed the connection";
    try {
      const response = await fetch(url, { headers: { Authorization: `Bearer ${token}` }, cache: "no-store", signal: quiet.signal });
      if (response.status === 401) return link("denied", "The coordinator does not know this token.");
      if (!response.ok || !response.body) throw new Error((await response.text()).trim() || `it answers ${response.status}`);
      const events = new Events(on);
      const reader = response.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(timer);
        timer = setTimeout(end, silence);
        if (await events.take(value)) {
          wait = firstWait;
          link("live");
        }
      }
    } catch (error) {
      why = quiet.signal.aborted ? "no word for 25 s" : whyLost(error);
    }
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    if (signal.aborted) return;
    link("lost", why, wait);
    await new Promise<void>((resolve) => {
      const later = setTimeout(resolve, wait);
      const sooner = () => { clearTimeout(later); resolve(); };
      addEventListener("online", sooner, { once: true });
    });
  }
}

/** Puts events together from the pieces that a stream comes in. */
export class Events {
  readonly #on: (event: string, data: unknown) => void;
  readonly #decoder = new TextDecoder();
  #rest = "";

  constructor(on: (event: string, data: unknown) => void) {
    this.#on = on;
  }

  /** Reports whether an event was whole. Between events others get their turn: a start tells two thousand rounds. */
  async take(piece: Uint8Array): Promise<boolean> {
    const blocks = (this.#rest + this.#decoder.decode(piece, { stream: true })).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    let began = performance.now();
    for (const block of blocks) {
      if (performance.now() - began > atOnce) {
        await new Promise((resolve) => setTimeout(resolve));
        began = performance.now();
      }
      let event = "message", data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) event = line.slice(7);
        else if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (data) this.#on(event, JSON.parse(data));
    }
    return blocks.length > 0;
  }
}
