// What each of a job's tasks asks of a visitor's data, in words.
import type { About } from "../api.js";

export interface TaskWords {
  /** What the job's model learns, behind "teach a model to"; classes are counted behind it. */
  teaches: string;
  /** Preview.kind of the data it trains on. */
  kind: string;
  /** What it may be beside that. */
  also?: string;
  /** What one example is called, and many. */
  one: string;
  many: string;
  /** Which files it reads. */
  formats: string;
  /** Heads of the preview's columns. */
  head: [string, string];
  /** Ends of the names of files that can be picked. */
  accept: string;
  /** A file to fill in: its name and text. */
  template?(labels: string[]): [name: string, text: string];
}

const lines = ".jsonl,.ndjson,.gz";

const questions = {
  kind: "questions", one: "question", many: "questions", head: ["Answer", "Question and document"], accept: lines,
  formats: "JSON Lines, one document a line: its text, or its words with boxes, and a question with its answers; also .gz.",
  template: () => ["example.jsonl", `${JSON.stringify({ text: "Corner Shop, 3 May 2024, total 9.00", question: "total", answers: ["9.00"] })}\n${
    JSON.stringify({ words: ["Total", "12.50"], boxes: [[90, 700, 180, 730], [600, 700, 700, 730]], question: "total", answers: ["12.50"] })}\n`],
} satisfies Partial<TaskWords>;

const known: Record<string, TaskWords> = {
  classify: {
    teaches: "sort texts into", kind: "texts", one: "example", many: "examples", head: ["Label", "Text"], accept: ".tsv,.csv,.txt,.jsonl,.ndjson,.gz",
    formats: "CSV or JSON Lines with a text and a label, or lines of label, tab, text; also .gz.",
    template: (labels) => ["example.tsv", labels.map((l) => `${l}\ta text that belongs to ${l}\n`).join("")],
  },
  multilabel: {
    teaches: "give texts any number of labels, of", kind: "lists", one: "text", many: "texts", head: ["Labels", "Text"], accept: lines,
    formats: "JSON Lines with a text and a list of labels; also .gz.",
    template: (labels) => ["example.jsonl", `${JSON.stringify({ text: "a text that both belong to", labels: labels.slice(0, 2) })}\n${
      JSON.stringify({ text: "a text that none belongs to", labels: [] })}\n`],
  },
  tag: {
    teaches: "label words with", kind: "words", one: "text", many: "texts", head: ["", "Words with their labels"], accept: lines,
    formats: "JSON Lines with words and as many tags; also .gz.",
    template: (labels) => ["example.jsonl", labels.map((l) => `${JSON.stringify({ words: ["a", "word"], tags: [labels.includes("O") ? "O" : l, l] })}\n`).join("")],
  },
  image: {
    teaches: "sort pictures into", kind: "pictures", one: "picture", many: "pictures", head: ["Label", "Picture"], accept: "image/*,.csv,.gz",
    formats: "Pictures that this browser shows (PNG, JPEG, …): a folder with one folder for each class, or those of one class at a time; or CSV of pixels with a label.",
  },
  listen: {
    teaches: "sort recordings into", kind: "recordings", one: "recording", many: "recordings", head: ["Label", "Recording"], accept: ".wav,.wave,.flac,audio/wav,audio/flac",
    formats: "WAV or FLAC: a folder with one folder for each class, or those of one class at a time; or what you say into this device's microphone.",
  },
  span: { teaches: "find answers in documents", ...questions },
  pretrain: {
    teaches: "tell the masked words of texts", kind: "unlabelled", one: "text", many: "texts", head: ["", "Text"], accept: ".txt,.csv,.jsonl,.ndjson,.gz",
    formats: "Texts without labels: one a line, or CSV or JSON Lines with a text; also .gz.",
  },
  causal: {
    teaches: "write texts on", kind: "unlabelled", also: "prompts", one: "text", many: "texts", head: ["", "Text"], accept: ".txt,.csv,.jsonl,.ndjson,.gz",
    formats: "JSON Lines with a prompt and its completion; or texts without labels, one a line, or CSV or JSON Lines with a text; also .gz.",
    template: () => ["example.jsonl", `${JSON.stringify({ prompt: "what somebody asks", completion: "what is to be answered" })}\n`],
  },
  answer: { teaches: "answer questions about documents", ...questions },
};

/** The words of a job's task; undefined for one that this page does not know. */
export const wordsOf = (about: About): TaskWords | undefined => Object.hasOwn(known, about.task) ? known[about.task] : undefined;

/** What a file holds, by Preview.kind, where it is not what the job trains on. */
export const holds: Record<string, string> = {
  texts: "texts with a label each",
  lists: "texts with lists of labels",
  unlabelled: "texts without a label",
  prompts: "prompts with completions",
  words: "words with a label each",
  questions: "questions about documents",
  pictures: "pictures",
  recordings: "recordings",
};
