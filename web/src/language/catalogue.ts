// What a language's catalogue of texts is: one message for each of English's, with the
// same placeholders. A missing message, one too many or another placeholder does not compile.
import type { en } from "./en.js";
import type { later } from "./en-later.js";

/** A text, or one for each form of a language's plurals, by the number {n}; "other" is always there. */
export type Message = string | Readonly<Partial<Record<Intl.LDMLPluralRule, string>> & { other: string }>;

export type English = typeof en & typeof later;
export type Key = keyof English;
export type Catalogue = Readonly<Record<Key, Message>>;

/** A language: its catalogue, and how it is written. */
export interface Language {
  /** BCP 47, its language alone: regions share a catalogue. */
  tag: string;
  /** What those who speak it call it. */
  name: string;
  direction: "ltr" | "rtl";
  messages: Catalogue;
}

type In<Text> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | In<Rest> : never;
type Other<M> = M extends { other: infer Text } ? Text : M;

/** The names in braces of a message. */
export type Placeholders<M> = In<Other<M>>;

/** A translation where it is of the same kind with the same placeholders, else nothing that a value could be. */
type Like<Source, M> = Source extends string
  ? (M extends string ? (In<M> extends In<Source> ? (In<Source> extends In<M> ? M : never) : never) : never)
  : (M extends { other: string } ? (Placeholders<M> extends Placeholders<Source> ? (Placeholders<Source> extends Placeholders<M> ? M : never) : never) : never);

/** Takes a catalogue that translates all of English's messages and nothing else. */
export const translation = <const M extends Catalogue>(messages: M & { [K in keyof M]: K extends Key ? Like<English[K], M[K]> : never }): Catalogue => messages;
