// What each of a job's tasks asks of a visitor's data.
import type { About } from "../api.js";
import { maybe, t, type Told } from "../language/language.js";

export interface TaskWords {
  /** Preview.kind of the data it trains on. */
  kind: string;
  /** What it may be beside that. */
  also?: string[];
  /** So many examples. */
  counted(n: number): Told;
  /** Which files it reads. */
  formats: Told;
  /** Heads of the preview's columns; a first one that is left out is no column. */
  head: [first: Told | undefined, second: Told];
  /** Ends of the names of files that can be picked. */
  accept: string;
  /** A file to fill in: its name and text. */
  template?(labels: string[]): [name: string, text: string];
}

const lines = ".jsonl,.json,.ndjson,.gz", unlabelled = ".txt,.csv,.jsonl,.json,.ndjson,.gz";

const sounds = ".wav,.wave,.flac,.ogg,.oga,.opus,.mp3,.m4a,audio/*";

const examples = (n: number) => t("n.examples", { n }), texts = (n: number) => t("n.texts", { n });
const pictures = (n: number) => t("n.pictures", { n });

/** Lines of JSON. */
const json = (...rows: object[]): string => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

const questions: TaskWords = {
  kind: "questions", counted: (n) => t("n.questions", { n }), head: [t("head.answer"), t("head.question")], accept: lines, formats: t("formats.questions"),
  template: () => ["example.jsonl", json({ text: "Corner Shop, 3 May 2024, total 9.00", question: "total", answers: ["9.00"] },
    { words: ["Total", "12.50"], boxes: [[90, 700, 180, 730], [600, 700, 700, 730]], question: "total", answers: ["12.50"] })],
};

const known: Record<string, TaskWords> = {
  classify: {
    kind: "texts", counted: examples, head: [t("head.label"), t("head.text")], accept: ".tsv,.csv,.txt,.jsonl,.json,.ndjson,.gz", formats: t("formats.classify"),
    template: (labels) => ["example.tsv", labels.map((l) => `${l}\t${t("template.text", { label: l })}\n`).join("")],
  },
  multilabel: {
    kind: "lists", counted: texts, head: [t("head.labels"), t("head.text")], accept: lines, formats: t("formats.multilabel"),
    template: (labels) => ["example.jsonl", json({ text: `${t("template.both")}`, labels: labels.slice(0, 2) }, { text: `${t("template.none")}`, labels: [] })],
  },
  tag: {
    kind: "words", counted: texts, head: [undefined, t("head.words")], accept: lines, formats: t("formats.tag"),
    template: (labels) => ["example.jsonl", json(...labels.map((l) => ({ words: ["a", "word"], tags: [labels.includes("O") ? "O" : l, l] })))],
  },
  image: { kind: "pictures", counted: pictures, head: [t("head.label"), t("head.picture")], accept: "image/*,.csv,.gz", formats: t("formats.image") },
  listen: {
    kind: "recordings", counted: (n) => t("n.recordings", { n }), head: [t("head.label"), t("head.recording")], accept: sounds, formats: t("formats.listen"),
  },
  transcribe: {
    kind: "transcripts", counted: (n) => t("n.recordings", { n }), head: [t("head.said"), t("head.recording")], accept: `${sounds},.txt,.jsonl`,
    formats: t("formats.transcribe"),
    template: () => ["example.jsonl", json({ audio: "first.wav", text: `${t("template.said")}` })],
  },
  span: questions,
  answer: questions,
  pretrain: { kind: "unlabelled", counted: texts, head: [undefined, t("head.text")], accept: unlabelled, formats: t("formats.pretrain") },
  causal: {
    kind: "unlabelled", also: ["prompts", "conversations"], counted: texts, head: [undefined, t("head.text")], accept: unlabelled, formats: t("formats.causal"),
    template: () => ["example.jsonl", json({ prompt: `${t("template.prompt")}`, completion: `${t("template.completion")}` })],
  },
};

/** The words of a job's task; undefined for one that this page does not know. */
export const wordsOf = (about: About): TaskWords | undefined => Object.hasOwn(known, about.task) ? known[about.task] : undefined;

/** How many of the task's examples these are. */
export const counted = (about: About | undefined, n: number): Told => (about && wordsOf(about)?.counted(n)) ?? examples(n);

/** What the job's model learns, and in how many rounds. */
export const teaches = (about: About): Told => (wordsOf(about) && maybe(`teaches.${about.task}`, { n: about.labels.length, rounds: t("n.rounds", { n: about.rounds }) }))
  ?? t("teaches.unknown", { rounds: t("n.rounds", { n: about.rounds }) });

/** What a file holds, by Preview.kind, where it is not what the job trains on. */
export const holds = (kind: string): Told => maybe(`holds.${kind}`) ?? t("holds.other");
