// When this device may work: only while it charges, only off metered networks,
// where the browser tells; and a wake lock while it does.

interface Battery extends EventTarget { charging: boolean }
interface Connection extends EventTarget { saveData?: boolean; type?: string }

const hints = navigator as Navigator & { getBattery?(): Promise<Battery>; connection?: Connection };

/** What a device may be told to wait for. */
export type Hindrance = "charging" | "unmetered";

export interface Conditions {
  /** What it must wait for now; "" where it may work. */
  hindrance(): Hindrance | "";
}

/** Offers what the browser tells and calls changed whenever an answer may differ. */
export async function watchConditions(
  offer: (id: "charging" | "unmetered" | "awake", to: boolean) => void,
  wanted: (id: "charging" | "unmetered" | "awake") => boolean,
  changed: () => void,
): Promise<Conditions> {
  const battery = await hints.getBattery?.().catch(() => undefined);
  const connection = hints.connection;
  offer("charging", battery !== undefined);
  offer("unmetered", connection !== undefined && (connection.saveData !== undefined || connection.type !== undefined));
  offer("awake", "wakeLock" in navigator);
  battery?.addEventListener("chargingchange", changed);
  connection?.addEventListener("change", changed);
  return {
    hindrance() {
      if (battery && wanted("charging") && !battery.charging) return "charging";
      if (connection && wanted("unmetered") && (connection.saveData || connection.type === "cellular")) {
        return "unmetered";
      }
      return "";
    },
  };
}

/** Keeps the screen on while held; a hidden page loses it and takes it again. */
export class Awake {
  #lock?: WakeLockSentinel;
  #held = false;

  constructor() {
    document.addEventListener("visibilitychange", () => { if (this.#held) void this.#take(); });
  }

  hold(on: boolean): void {
    if (on === this.#held) return;
    this.#held = on;
    if (on) void this.#take();
    else void this.#lock?.release().catch(() => undefined);
  }

  async #take(): Promise<void> {
    if (document.visibilityState !== "visible" || !navigator.wakeLock) return;
    const lock = await navigator.wakeLock.request("screen").catch(() => undefined); // low battery refuses
    if (this.#held && this.#lock?.released !== false) this.#lock = lock;
    else void lock?.release().catch(() => undefined); // it was let go meanwhile, or is kept by another
  }
}
