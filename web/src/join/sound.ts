// Recordings in the page: drawn, played, and said into this device's microphone, word by
// word or with what was said written beside it. A part of the script that jobs of recordings fetch. Nothing of it leaves the page.
import type { About } from "../api.js";
import { element, message, Sorry } from "../dom.js";
import { t, type Text, type Told } from "../language/language.js";
import { seconds } from "./amounts.js";
import { Ear, play, type Take } from "./ear.js";
import type { Labelled } from "./picked.js";
import { encodeWAV } from "./wav.js";

const svg = "http://www.w3.org/2000/svg";

/** How loud a recording is over time, 255 at its loudest. */
export function waveform(peaks: Uint8Array, lasts: number, label: Text): Element {
  const drawn = document.createElementNS(svg, "svg");
  const set = (at: Element, of: Record<string, string | number>) => { for (const [k, v] of Object.entries(of)) at.setAttribute(k, String(v)); };
  set(drawn, { class: "wave", "aria-hidden": "true", viewBox: `0 0 ${2 * peaks.length} 64`, preserveAspectRatio: "none" });
  for (const [i, peak] of peaks.entries()) {
    const bar = document.createElementNS(svg, "rect"), height = Math.max(2, peak / 4);
    set(bar, { x: 2 * i, y: 32 - height / 2, width: 1.4, height });
    drawn.append(bar);
  }
  const time = seconds(Math.round(10 * lasts) / 10);
  return element("span", { class: "sound" }, element("span", { role: "img", "aria-label": t("data.recording.of", { label, time }) }, drawn),
    element("span", { class: "soft small" }, time));
}

const columns = 96;

function peaksOf({ samples }: Take): Uint8Array {
  const n = Math.min(columns, samples.length), loud = new Float32Array(n);
  samples.forEach((v, i) => {
    const at = Math.floor(i * n / samples.length);
    loud[at] = Math.max(loud[at] ?? 0, Math.abs(v));
  });
  const most = loud.reduce((a, b) => Math.max(a, b), 1e-9);
  return Uint8Array.from(loud, (v) => 255 * v / most);
}

interface Clip extends Labelled {
  take: Take;
}

const longest = 10; // seconds of a clip

/** Seconds of a clip: as many as a row of the job has room for. */
const clipSeconds = (sound: About["sound"]): number => Math.min(longest, sound ? sound.samples / sound.rate : 1);

const shortWord = 0.1; // seconds

/** Seconds below which a clip is no word. */
const leastSeconds = (sound: About["sound"]): number => Math.max(shortWord, sound ? sound.least / sound.rate : 0);

const wavOf = ({ samples, rate }: Take) => new Blob([encodeWAV(samples, rate)], { type: "audio/wav" });

/** One thing that is said, for which the microphone is opened and closed again; told says what to do. */
export async function listenOnce(of: About["sound"], recorder: string, told: (text: Told) => void): Promise<Blob> {
  let gone: Told | undefined;
  const ear = new Ear(recorder, () => undefined, (why) => {
    gone = why;
    ear.close();
  });
  try {
    await ear.open();
    told(t("microphone.now.anything"));
    return wavOf(await ear.take(clipSeconds(of), leastSeconds(of), () => told(t("microphone.recording"))));
  } catch (error) {
    throw gone ? new Sorry(gone) : error;
  } finally {
    ear.close();
  }
}

/** A recording to look at and to play, of one channel as the browser decodes it. */
export async function soundOf(recording: Blob): Promise<{ shown: Node; lasts: number }> {
  const buffer = await new OfflineAudioContext(1, 1, 44_100).decodeAudioData(await recording.arrayBuffer());
  const take = { samples: buffer.getChannelData(0), rate: buffer.sampleRate };
  const button = element("button", { type: "button", class: "quiet small" }, t("microphone.play"));
  button.addEventListener("click", () => void play(take));
  return { shown: element("span", { class: "sound" }, waveform(peaksOf(take), buffer.duration, t("microphone.tried")), button), lasts: buffer.duration };
}

/** Writes a text into an element, and again where the language changes. */
function write(at: HTMLElement, text: Text): void {
  at.replaceChildren(...element("span", {}, text).childNodes);
}

/** Where words or sentences are said, listened to and deleted; what is said in a sentence is written down, too. */
export class Panel {
  readonly #about: About;
  readonly #changed: (clips: Labelled[]) => void;
  readonly #closed: (why: Text) => void;
  readonly #ear: Ear;
  readonly #root: HTMLElement;
  readonly #written: boolean;
  readonly #word = element("select", { id: "microphone-label" });
  readonly #say = element("p", { id: "microphone-word", class: "say" });
  readonly #level = element("meter", { id: "microphone-level", min: "0", max: "1", low: "0.02", "aria-label": t("microphone.level") });
  readonly #record = element("button", { id: "microphone-record", type: "button" });
  readonly #state = element("p", { id: "microphone-told", role: "status" });
  readonly #list = element("ul", { id: "microphone-clips", class: "clips" });
  #clips: Clip[] = [];
  #made = 0;
  #recording = false;

  constructor(at: HTMLElement, about: About, recorder: string, changed: (clips: Labelled[]) => void, closed: (why: Text) => void) {
    this.#about = about;
    this.#written = about.task === "transcribe";
    this.#changed = changed;
    this.#closed = closed;
    this.#root = at;
    this.#ear = new Ear(recorder, (level) => { this.#level.value = level; }, (why) => this.close(why));
    const close = element("button", { id: "microphone-close", type: "button", class: "quiet" }, t("microphone.close"));
    close.addEventListener("click", () => this.close());
    this.#record.addEventListener("click", () => void this.#take());
    this.#word.addEventListener("change", () => this.#paint());
    at.replaceChildren(
      ...(this.#written ? [] : [element("label", { for: "microphone-label" }, t("microphone.word"), this.#word)]),
      this.#say, this.#level,
      element("p", { class: "buttons" }, this.#record, close),
      this.#state, this.#list);
    write(this.#record, t("microphone.record"));
    this.#fill(about.labels[0] ?? "");
  }

  /** Asks for the microphone. An error is a sentence that says what to do next. */
  async open(): Promise<void> {
    await this.#ear.open();
    this.#root.hidden = false;
    this.#tell("");
    this.#paint();
  }

  focus(): void {
    this.#record.focus();
  }

  /** Lets go of the microphone; what was recorded stays. */
  close(why: Text = ""): void {
    this.#ear.close();
    this.#paint();
    this.#root.hidden = this.#clips.length === 0;
    this.#closed(why);
  }

  forget(): void {
    this.#clips = [];
    this.#fill(this.#word.value);
    if (!this.#ear.isOpen) this.#root.hidden = true;
  }

  /** One word, or what else is said: what is heard from where it begins, as long as a row of the job is. */
  async #take(): Promise<void> {
    if (this.#recording) return this.#ear.finish();
    const label = this.#word.value;
    this.#recording = true;
    write(this.#record, t("microphone.stop"));
    this.#tell(this.#written ? t("microphone.now.anything") : t("microphone.now", { word: label }));
    try {
      const take = await this.#ear.take(clipSeconds(this.#about.sound), leastSeconds(this.#about.sound), () => this.#tell(t("microphone.recording")));
      const name = `${label || "#"} ${++this.#made}`;
      // Anyone who protects providers counts what is said here as one's.
      this.#clips = [{ label, file: wavOf(take), name, user: "microphone", take }, ...this.#clips];
      this.#fill(this.#least());
      this.#tell(this.#written ? t("microphone.write") : t("microphone.recorded", { word: label }));
      if (this.#written) this.#list.querySelector("input")?.focus(); // nothing is taken before it says what is said
      else this.#changed(this.#kept());
    } catch (error) {
      this.#tell(message(error), true);
    }
    this.#recording = false;
    write(this.#record, t("microphone.record"));
  }

  #kept = (): Labelled[] => this.#clips.filter((c) => !this.#written || c.text)
    .map(({ label, file, name, user, text }) => ({ label, file, name, user, text }));

  #count = (label: string): number => this.#clips.reduce((n, c) => n + (c.label === label ? 1 : 0), 0);

  /** The word that was said the least. */
  #least(): string {
    return this.#about.labels.reduce((a, b) => this.#count(b) < this.#count(a) ? b : a, this.#about.labels[0] ?? "");
  }

  #tell(text: Text, failed = false): void {
    write(this.#state, text);
    this.#state.classList.toggle("failed", failed);
  }

  /** Writes words with their counts, and the clips. */
  #fill(next: string): void {
    this.#word.replaceChildren(...this.#about.labels.map((l) => element("option", { value: l }, `${l.slice(0, 60)} (${this.#count(l)})`)));
    this.#word.value = next;
    this.#list.replaceChildren(...this.#clips.map((c) => this.#row(c)));
    this.#paint();
  }

  #paint(): void {
    write(this.#say, this.#written ? t("microphone.sentence") : t("microphone.say", { word: this.#word.value }));
    this.#record.hidden = !this.#ear.isOpen;
    this.#level.hidden = !this.#ear.isOpen;
  }

  #row(clip: Clip): HTMLElement {
    const act = (text: Told, run: () => void) => {
      const button = element("button", { type: "button", class: "quiet small", "aria-label": t("shelf.which", { act: text, job: clip.name }) }, text);
      button.addEventListener("click", run);
      return button;
    };
    return element("li", {}, this.#written ? this.#text(clip) : element("bdi", {}, clip.label.slice(0, 60)), waveform(peaksOf(clip.take), clip.take.samples.length / clip.take.rate, clip.name),
      element("span", { class: "buttons" }, act(t("microphone.play"), () => void play(clip.take)), act(t("microphone.delete"), () => this.#delete(clip))));
  }

  /** Where its owner writes what is said in a clip. */
  #text(clip: Clip): HTMLElement {
    const text = element("input", { type: "text", dir: "auto", placeholder: t("head.said"), "aria-label": t("microphone.said", { clip: clip.name }) });
    text.value = clip.text ?? "";
    text.addEventListener("input", () => { clip.text = text.value.trim(); });
    text.addEventListener("change", () => {
      this.#tell(clip.text ? "" : t("microphone.write"));
      this.#changed(this.#kept());
    });
    return text;
  }

  #delete(clip: Clip): void {
    const at = this.#clips.indexOf(clip);
    this.#clips = this.#clips.filter((c) => c !== clip);
    this.#fill(this.#word.value);
    this.#tell(t("microphone.deleted", { clip: clip.name }));
    // The button is gone: on to the next one's, or back to the first.
    const rest = this.#list.querySelectorAll<HTMLButtonElement>("li button:last-child");
    (rest[Math.min(at, rest.length - 1)] ?? this.#record).focus();
    if (!this.#clips.length && !this.#ear.isOpen) this.#root.hidden = true;
    this.#changed(this.#kept());
  }
}
