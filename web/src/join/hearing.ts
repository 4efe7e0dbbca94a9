// Recordings, as far as every page has to know of them. What draws, plays and records them
// is fetched by jobs of recordings alone.
import type { Preview, Sound, Source } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { byId, element, message, say, show, Sorry } from "../dom.js";
import { t, type Text } from "../language/language.js";
import { seconds } from "./amounts.js";
import type { Labelled } from "./picked.js";
import type * as Module from "./sound.js";

declare const SOUND_URL: string;
declare const RECORDER_URL: string;

let fetching: Promise<typeof Module> | undefined;
let loaded: typeof Module | undefined;
let panel: Module.Panel | undefined;

/** Fetches what draws and records; waveform can be called once it is here. */
export async function loadSound(): Promise<typeof Module> {
  fetching ??= import(new URL(SOUND_URL, location.href).href) as Promise<typeof Module>;
  fetching.catch(() => { fetching = undefined; }); // the next try fetches again
  loaded = await fetching;
  loaded.use({ t, seconds, element, message, Sorry }); // a bundle of its own has no words
  return loaded;
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
export const soundOf = async (recording: Blob): Promise<Node> => (await loadSound()).soundOf(recording);

/** Refuses a recording of which nothing can be learnt, before anything is joined. */
export function refuseShort(about: About, source: Source, { shortest }: Preview): void {
  if (!about.sound || !shortest || !("recordings" in source)) return;
  const least = about.sound.least / about.sound.rate;
  if (shortest.seconds >= least) return;
  const name = source.recordings[shortest.at]?.name ?? "a recording";
  throw new Sorry(t("sound.short", { file: name, time: seconds(shortest.seconds), least: seconds(least) }));
}
