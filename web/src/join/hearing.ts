// Recordings, as far as every page has to know of them. What draws, plays and records them
// is fetched by jobs of recordings alone.
import type { Preview, Sound, Source } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { byId, message, say, show, Sorry } from "../dom.js";
import { t, type Text } from "../language/language.js";
import { seconds } from "./amounts.js";
import type { Labelled } from "./picked.js";
import type * as Module from "./sound.js";

declare const RECORDER_URL: string;

let loaded: typeof Module | undefined;
let panel: Module.Panel | undefined;

/** Fetches what draws and records; waveform can be called once it is here. */
export async function loadSound(): Promise<typeof Module> {
  return loaded ??= (await import("./later.js")).sound;
}

const recorder = () => new URL(RECORDER_URL, location.href).href;

/** A picture of a recording. */
export const waveform = (sound: Sound, label: string): Node => {
  if (!loaded) throw new Error("recordings are drawn by what is not loaded yet");
  return loaded.waveform(Uint8Array.from(atob(sound.peaks), (c) => c.charCodeAt(0)), sound.seconds, label);
};

/** Opens the microphone, which asks for it, and takes what is said; changed is called with all that is kept of it. */
export async function offerMicrophone(about: About, changed: (clips: Labelled[]) => void): Promise<void> {
  const at = byId("microphone");
  say("microphone-state", t("sound.asking"));
  byId("microphone-state").classList.remove("failed");
  try {
    const sound = await loadSound();
    panel ??= new sound.Panel(at, about, recorder(), changed, closed);
    await panel.open();
    say("microphone-state", "");
    show("microphone-open", false);
    panel.focus();
  } catch (error) {
    say("microphone-state", message(error));
    byId("microphone-state").classList.add("failed");
  }
}

/** Shows why the microphone is closed, where its owner did not close it. */
function closed(why: Text): void {
  show("microphone-open", true);
  say("microphone-state", why);
  byId("microphone-state").classList.toggle("failed", why !== "");
}

/** Lets go of the microphone; what was recorded stays. */
export const closeMicrophone = (): void => panel?.close();

/** Forgets what was recorded. */
export const forgetClips = (): void => panel?.forget();

/** One thing that is said, as a WAV file; told says what to do. */
export async function listenOnce(of: About["sound"], told: (text: Text) => void): Promise<Blob> {
  told(t("sound.asking"));
  return (await loadSound()).listenOnce(of, recorder(), told);
}

/** A recording to look at and to play. */
export const soundOf = async (recording: Blob): Promise<{ shown: Node; lasts: number }> => (await loadSound()).soundOf(recording);

/** Refuses a recording of which nothing can be learnt, before anything is joined, and says where only a beginning is heard. */
export function checkLengths(about: About, source: Source, { shortest, longest, kind }: Preview): void {
  if (!about.sound || !shortest || !longest || !("recordings" in source)) return;
  const least = about.sound.least / about.sound.rate, most = about.sound.samples / about.sound.rate;
  const named = (at: number) => source.recordings[at]?.name ?? "a recording";
  if (shortest.seconds < least) throw new Sorry(t("sound.short", { file: named(shortest.at), time: seconds(shortest.seconds), least: seconds(least) }));
  if (longest.seconds <= most || kind !== "transcripts" && longest.seconds < most + mere) return;
  const said = { file: named(longest.at), time: seconds(hundredths(longest.seconds)), most: seconds(hundredths(most)) };
  if (kind === "transcripts") throw new Sorry(t("sound.long", said)); // nothing says where its text would have to be cut
  say("cut", t("sound.cut", said));
}

/** What is heard of a recording of so many seconds, where that is not all. */
export const cutText = (sound: About["sound"], lasts: number): Text => {
  const most = sound ? sound.samples / sound.rate : Infinity;
  return lasts >= most + mere ? t("sound.cut.one", { time: seconds(hundredths(lasts)), most: seconds(hundredths(most)) }) : "";
};

const mere = 0.1; // seconds of an end that nobody misses

const hundredths = (s: number) => Math.round(100 * s) / 100;
