// The microphone: asked for on a click, heard sample by sample as it gives them, let go of
// as soon as it is not needed. What it hears goes to the page alone.

import { Sorry } from "../dom.js";
import { t, type Told } from "../language/language.js";

/** What was heard, of one channel. */
export interface Take {
  samples: Float32Array;
  rate: number;
}

const loudEnough = 0.02; // of full scale: speech in a room, and above a muted microphone's hiss
const patience = 4; // seconds until somebody has to speak
const before = 0.15; // seconds that are kept from before the first sound

interface Taking {
  length: number; // samples
  /** Blocks from before the sound, then of it. */
  blocks: Float32Array[];
  waited: number; // samples before the sound
  heard: number; // samples since then
  begun(): void;
  done(): void;
}

const lengthOf = (blocks: Float32Array[]) => blocks.reduce((n, b) => n + b.length, 0);

export class Ear {
  readonly #recorder: string;
  readonly #level: (level: number) => void;
  readonly #lost: (why: Told) => void;
  #context?: AudioContext;
  #stream?: MediaStream;
  #taking?: Taking;

  /** recorder is the address of recorder.worklet.ts; level is told how loud it is, 0 to 1; lost, why it has gone. */
  constructor(recorder: string, level: (level: number) => void, lost: (why: Told) => void) {
    this.#recorder = recorder;
    this.#level = level;
    this.#lost = lost;
  }

  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  /** Asks for the microphone. An error is a sentence that says what to do next. */
  async open(): Promise<void> {
    if (this.isOpen) return;
    if (!navigator.mediaDevices?.getUserMedia || typeof AudioWorkletNode !== "function") {
      throw sorry("none");
    }
    let stream: MediaStream;
    try {
      // The sound itself: what a browser makes of it for calls is not what other devices train on.
      stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
    } catch (error) {
      throw refusal(error);
    }
    const context = new AudioContext();
    try {
      await context.audioWorklet.addModule(this.#recorder);
      const recorder = new AudioWorkletNode(context, "recorder");
      recorder.port.onmessage = ({ data }: MessageEvent<Float32Array>) => this.#hear(data);
      context.createMediaStreamSource(stream).connect(recorder).connect(context.destination); // which stays silent
      await running(context);
    } catch (error) {
      for (const track of stream.getTracks()) track.stop();
      void context.close();
      throw error instanceof Sorry ? error : unusable(error);
    }
    this.#context = context;
    this.#stream = stream;
    for (const track of stream.getTracks()) {
      track.onended = () => this.#lost(t("microphone.gone"));
    }
  }

  close(): void {
    const { done } = this.#taking ?? {};
    this.#taking = undefined;
    done?.();
    for (const track of this.#stream?.getTracks() ?? []) {
      track.onended = null;
      track.stop();
    }
    void this.#context?.close();
    this.#context = this.#stream = undefined;
    this.#level(0);
  }

  /**
   * What is heard from the first sound on, for so many seconds or until finish; begun is
   * called at that sound. Less than least seconds of it are refused.
   */
  async take(seconds: number, least: number, begun: () => void): Promise<Take> {
    const rate = this.#context?.sampleRate;
    if (!rate) throw sorry("closed");
    const taking: Taking = { length: Math.floor(seconds * rate), blocks: [], waited: 0, heard: 0, begun, done: () => undefined };
    await new Promise<void>((done) => {
      taking.done = done;
      this.#taking = taking;
    });
    this.#taking = undefined;
    if (!this.isOpen) throw sorry("closed");
    if (!taking.heard) throw sorry("silent");
    if (taking.heard < least * rate) throw sorry("short");
    const samples = new Float32Array(lengthOf(taking.blocks));
    let at = 0;
    for (const block of taking.blocks) {
      samples.set(block, at);
      at += block.length;
    }
    return { samples: samples.subarray(0, taking.length), rate };
  }

  /** Ends a take early. */
  finish(): void {
    this.#taking?.done();
  }

  #hear(block: Float32Array): void {
    const loudest = block.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
    this.#level(Math.min(1, loudest));
    const taking = this.#taking, rate = this.#context?.sampleRate;
    if (!taking || !rate) return;
    taking.blocks.push(block);
    if (taking.heard || loudest >= loudEnough) {
      if (!taking.heard) taking.begun();
      taking.heard += block.length;
      if (lengthOf(taking.blocks) >= taking.length) taking.done();
      return;
    }
    taking.waited += block.length;
    while (lengthOf(taking.blocks.slice(1)) >= before * rate) taking.blocks.shift();
    if (taking.waited >= patience * rate) taking.done();
  }
}

const toStart = 8; // seconds

/** Waits until a context runs: Firefox's does not where the machine plays no sound. */
async function running(context: AudioContext): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([context.resume(), new Promise((_, fail) => { timer = setTimeout(() => fail(sorry("soundless")), 1000 * toStart); })]);
  clearTimeout(timer);
}

/** A sentence that says what to do next. */
const sorry = (why: "none" | "refused" | "missing" | "busy" | "soundless" | "closed" | "silent" | "short") => new Sorry(t(`microphone.${why}`));

const unusable = (error: unknown) => new Sorry(t("microphone.unusable", { why: error instanceof Error ? error.message : String(error) }));

/** Why there is no microphone, and what to do. */
function refusal(error: unknown): Error {
  switch (error instanceof DOMException ? error.name : "") {
    case "NotAllowedError":
    case "SecurityError":
      return sorry("refused");
    case "NotFoundError":
    case "OverconstrainedError":
      return sorry("missing");
    case "NotReadableError":
    case "AbortError":
      return sorry("busy");
  }
  return unusable(error);
}

/** Plays a take; settled when it is over. */
export async function play({ samples, rate }: Take): Promise<void> {
  const context = new AudioContext();
  try {
    const buffer = context.createBuffer(1, samples.length, rate);
    buffer.copyToChannel(new Float32Array(samples), 0);
    const source = context.createBufferSource();
    source.buffer = buffer;
    source.connect(context.destination);
    const over = new Promise((resolve) => { source.onended = resolve; });
    source.start();
    await over;
  } finally {
    void context.close();
  }
}
