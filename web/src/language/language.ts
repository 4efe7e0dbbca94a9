// The language that a page speaks: English, which it holds, or one that it fetches, by
// what its browser prefers or its visitor chose. Texts and numbers are written anew where
// it changes: see dom.ts.
import type { Catalogue, English, Key, Language, Message, Placeholders } from "./catalogue.js";
import { en } from "./en.js";
import { visible } from "../../edge/src/words.js";

export { visible };

const english: Language = { tag: "en", name: "English", direction: "ltr", messages: { ...en } as Catalogue }; // the rest is added

/** Adds what a part of the script brings along, which is English: other languages come whole. */
export const add = (messages: Partial<Catalogue>): void => { Object.assign(english.messages, messages); };

let language = english;
let regional = "en"; // with the browser's region, which numbers and dates follow
let plurals = new Intl.PluralRules("en");
const told = new Set<() => void>();

/** A text in whatever language the page speaks when it is looked at. */
export class Told {
  constructor(readonly render: () => string) {}
  toString(): string { return this.render(); }
}

export type Text = string | Told;

/** What a placeholder takes: a number is written as the language does, a string is somebody else's and may say anything. */
type Value = number | Text;

type Values<K extends Key> = [Placeholders<English[K]>] extends [never] ? []
  : [values: { [P in Placeholders<English[K]>]: Value } & (English[K] extends string ? unknown : { n: number })];

const leftward = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

/** Somebody's words within a sentence: where one of the two is written from right to left they do not mix. */
const within = (text: string) => language.direction === "rtl" || leftward.test(text) ? `\u2068${visible(text)}\u2069` : visible(text);

/** A message of the catalogue. */
export function t<K extends Key>(key: K, ...[values]: Values<K>): Told {
  return new Told(() => fill(language.messages[key], (values ?? {}) as Record<string, Value>));
}

/** A message whose key is put together, as of a job's task; undefined where there is none. */
export function maybe(key: string, values: Record<string, Value> = {}): Told | undefined {
  return Object.hasOwn(english.messages, key) ? new Told(() => fill(language.messages[key as Key], values)) : undefined;
}

/** A message of the page's HTML, which holds it in English. */
export const inPage = (key: string, text: string): Told => new Told(() => {
  const message = language.messages[key as Key] as Message | undefined;
  return message === undefined ? text : fill(message, {});
});

function fill(message: Message, values: Record<string, Value>): string {
  const text = typeof message === "string" ? message : message[plurals.select(Number(values.n))] ?? message.other;
  return text.replace(/\{(\w+)\}/g, (_, name: string) => {
    const v = values[name];
    return v instanceof Told ? v.render() : typeof v === "string" ? within(v) : number(v ?? NaN);
  });
}

/** Several as one text. */
export const listed = (texts: Text[], separator = ""): Told => new Told(() => texts.map((x) => x instanceof Told ? x.render() : within(x)).join(separator));

const formats = new Map<string, Intl.NumberFormat>();

/** A number as the language writes it. */
export function number(x: number, options: Intl.NumberFormatOptions = {}): string {
  const key = `${regional} ${JSON.stringify(options)}`;
  let format = formats.get(key);
  if (!format) formats.set(key, format = new Intl.NumberFormat(regional, options));
  return format.format(x);
}

/** A moment in ms since 1970 as the language writes a date, and with a style the time. */
export const date = (ms: number, timeStyle?: "short"): Told =>
  new Told(() => new Intl.DateTimeFormat(regional, { dateStyle: "medium", timeStyle }).format(ms));

/** Names as the language lists them: "a, b and c". */
export const list = (names: Text[]): Told =>
  new Told(() => new Intl.ListFormat(regional, { type: "conjunction" }).format(names.map((x) => x instanceof Told ? x.render() : within(x))));

/** The tag of what the page speaks. */
export const spoken = (): string => language.tag;

/** Calls back now and whenever the language changes. */
export function whenTold(write: () => void): void {
  told.add(write);
  write();
}

declare const LANGUAGES: { tag: string; name: string; file: string }[];

const kept = "starling-language";

/** Language tags without their regions. */
const bare = (tag: string) => tag.toLowerCase().split("-")[0] ?? "";

/** What the visitor chose on an earlier visit. */
function chosen(): string {
  try {
    return localStorage.getItem(kept) ?? "";
  } catch {
    return ""; // storage is off
  }
}

const offers = (tag: string) => tag === "en" || LANGUAGES.some((l) => l.tag === tag);

/** The languages there are, to choose from. */
export const languages = (): { tag: string; name: string }[] => [english, ...LANGUAGES];

/** Speaks what the visitor chose before, or else the first of the browser's languages that there is. */
export async function begin(): Promise<void> {
  const before = chosen();
  const tag = offers(before) ? before : navigator.languages.map(bare).find(offers) ?? "en";
  await speak(tag).catch(() => speak("en")); // a page that half came is read in English
}

/** Speaks a language that the visitor chose, and keeps that. */
export async function choose(tag: string): Promise<void> {
  await speak(tag);
  try {
    localStorage.setItem(kept, tag);
  } catch { /* it is chosen again on the next visit */ }
}

let turn = 0; // a choice that another one has followed has no say any more

async function speak(tag: string): Promise<void> {
  const mine = ++turn, file = LANGUAGES.find((l) => l.tag === tag)?.file;
  const next = file ? (await import(new URL(file, document.baseURI).href) as { default: Language }).default : english;
  if (mine !== turn) return;
  language = next;
  regional = navigator.languages.find((l) => bare(l) === bare(next.tag)) ?? next.tag;
  plurals = new Intl.PluralRules(next.tag);
  document.documentElement.lang = next.tag;
  document.documentElement.dir = next.direction;
  for (const write of told) write();
}
