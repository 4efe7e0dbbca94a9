// What this device is doing, in words.
import { StarlingError, type Participation } from "../../edge/src/index.js";
import type { About } from "../api.js";
import { listed, maybe, t, type Told } from "../language/language.js";
import { bound, bytes, duration, rounds } from "./amounts.js";
import type { Hindrance } from "./conditions.js";

/** From here on an epsilon limits nothing that anybody could conclude. */
export const useless = 14;

/** What the file has given to this job, and to others, as seen from this device. */
export function givenText(p: Participation, about: About | undefined): { rounds: Told | string; epsilon: Told | string } {
  if (!p.given || !about) return p.unread ? { rounds: t("account.unread"), epsilon: t("account.unknown") } : { rounds: "…", epsilon: "…" };
  // By what the job is known by, not by its name: another may have that, and an account shows names escaped.
  const own = p.given.find((g) => g.id === about.id);
  const others = p.given.filter((g) => g !== own && g.contributed > 0);
  const elsewhere = others.reduce((n, g) => n + g.contributed, 0);
  return {
    rounds: listed([
      t("account.rounds", { n: own?.promised ?? about.rounds, given: own?.contributed ?? 0 }),
      ...(elsewhere ? [t("account.elsewhere", { n: others.length, rounds: rounds(elsewhere) })] : []),
      ...(p.kept ? [] : [t("account.forgets")]),
    ]),
    epsilon: own?.epsilon && own.delta
      ? t(own.epsilon > useless ? "account.useless" : "account.epsilon", { bound: bound({ epsilon: own.epsilon, delta: own.delta }) })
      : own?.contributed ? t("account.no.bound") : t("account.nothing"),
  };
}

/** Where a participation stands; held: what it waits for where not its owner paused it. */
export function stateText(p: Participation, held: Hindrance | ""): Told {
  switch (p.standing) {
    case "starting":
      return t("state.starting");
    case "paused":
      return held ? t(`state.${held}`) : t("state.paused");
    case "stopped":
      return t("state.stopped", { n: p.totals.rounds });
    case "finished":
      return t("state.finished", { n: p.totals.rounds });
    case "refused":
      return t("state.refused");
    case "failed":
      return uninvited.test(p.reason) ? t("state.uninvited") : t("state.failed");
  }
  const doing = eventText(p);
  return p.standing === "pausing" ? t("state.pausing", { doing }) : doing;
}

/** A refusal at the door, as the coordinator writes it (door.go, handshake.go). */
const uninvited = /\binvitation (?:that )?is spent, expired or revoked/;

/** What a socket says of its own end, to its programmer: a person reads that there is no connection. */
const technical = /\b(?:code|status|errno) -?\d|\bdial|websocket|\b(?:wss?|https?|tcp|udp):|\btcp\b|\bEOF\b|i\/o|deadline exceeded|\bsocket\b/i;

/** States whose text says why, beside what is told of them. */
const explained = new Set(["abandoned", "dropped", "refused", "backoff"]);

/** Why it failed, by its code; undefined where that says nothing more. */
export const codeText = (p: Participation): Told | undefined =>
  p.standing === "failed" && p.error instanceof StarlingError && !uninvited.test(p.reason) ? maybe(`failed.${p.error.code}`) : undefined;

/** Why, in the words of the program or of the coordinator; "" where the state says all. */
export function reasonText(p: Participation): string {
  if (p.standing === "failed") return uninvited.test(p.reason) ? "" : p.reason;
  if (p.standing !== "running" && p.standing !== "pausing") return "";
  const { state, text } = p.event ?? { state: "", text: "" };
  return text && explained.has(state) && !(state === "backoff" && technical.test(text)) ? text : p.zeroed;
}

/** Whether this device has no connection now. */
export const offline = (p: Participation) => (p.standing === "running" || p.standing === "pausing") && p.event?.state === "backoff";

function eventText(p: Participation): Told {
  const e = p.event;
  if (!e) return t("state.connecting");
  const round = e.round ? t("state.round", { round: String(e.round) }) : listed([]);
  switch (e.state) {
    case "connecting":
      return t("state.connecting");
    case "preparing":
      return t("state.preparing");
    case "waiting":
      return t("state.waiting");
    case "keying":
      return t("state.keying", { round });
    case "fetching":
      return e.text === "base" ? t("state.base", { done: bytes(e.done ?? 0), total: bytes(e.total ?? 0) }) : t("state.fetching", { round });
    case "training":
      return e.total ? t("state.step", { i: e.done ?? 0, steps: e.total, round }) : t("state.training", { round });
    case "uploading":
      return t("state.uploading", { round });
    case "collecting":
      return t("state.collecting", { round });
    case "revealing":
      return t("state.revealing", { round });
    case "committed":
      return t("state.committed", { round: String(e.round) });
    case "abandoned":
      return t("state.abandoned");
    case "dropped":
      return t("state.dropped");
    case "refused":
      return t("state.declined");
    case "backoff":
      return t("state.backoff", { time: duration((e.total ?? 0) / 1000) });
    case "finished":
      return t("state.over");
  }
  return listed([e.state]);
}
