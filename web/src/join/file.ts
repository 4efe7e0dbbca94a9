// The picked file: which columns it has. Its examples are read by the edge
// client, as on every device.

/** Names of the columns, or keys; empty where the file has none to choose from. */
export async function columnsOf(file: Blob, name: string): Promise<string[]> {
  let plain = name.toLowerCase();
  let stream = file.stream();
  if (plain.endsWith(".gz")) {
    plain = plain.slice(0, -3);
    if (typeof DecompressionStream !== "function") return [];
    stream = stream.pipeThrough(new DecompressionStream("gzip"));
  }
  const line = await firstLine(stream).catch(() => ""); // what is damaged the preview says
  if (/\.(jsonl|ndjson)$/.test(plain)) {
    try {
      const first: unknown = JSON.parse(line);
      return first && typeof first === "object" ? Object.keys(first) : [];
    } catch {
      return []; // the preview will say what is wrong
    }
  }
  if (plain.endsWith(".csv")) return cells(line, line.split(";").length > line.split(",").length ? ";" : ",");
  return [];
}

/** The most of a first line that is looked at, in bytes. */
const firstLineMost = 1 << 16;

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "", read = 0;
  while (!text.includes("\n") && read < firstLineMost) {
    const { done, value } = await reader.read();
    if (done) break;
    read += value.length;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel().catch(() => undefined); // enough was read
  return text.split(/\r?\n/, 1)[0]?.replace(/^\uFEFF/, "") ?? "";
}

/** The cells of a CSV header (RFC 4180; a header has no line breaks). */
export function cells(line: string, comma: string): string[] {
  const out: string[] = [];
  let cell = "", quoted = false;
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quoted && c === '"' && line[i + 1] === '"') {
      cell += c;
      i++;
    } else if (c === '"') {
      quoted = !quoted;
    } else if (c === comma && !quoted) {
      out.push(cell.trim());
      cell = "";
    } else {
      cell += c;
    }
  }
  return [...out, cell.trim()];
}

/** The columns that are most likely meant, by their names; of a file whose names are not known a text and then a label. */
export function guess(columns: string[]): { label: string; text: string } {
  const named = (names: string[]) => names.map((name) => columns.find((c) => c.toLowerCase() === name)).find((c) => c !== undefined);
  const known = named(["label", "class", "category", "target", "y"]);
  const text = named(["text", "sentence", "content", "body", "description"]) ?? columns.find((c) => c !== known);
  return { text: text ?? "", label: known ?? columns.findLast((c) => c !== text) ?? "" };
}

/** Whether these are the keys of prompts or conversations, of which no column is to be chosen: the edge reads them by their own names. */
export function spoken(columns: string[]): boolean {
  return [["messages"], ["conversations"], ["prompt", "completion"], ["instruction", "output"]].some((keys) => keys.every((k) => columns.includes(k)));
}
