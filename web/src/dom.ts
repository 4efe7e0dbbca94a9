// The page's elements. Text reaches the page as text nodes only: nothing that a
// coordinator or a file says is ever parsed as markup. What is told by the catalogue is
// written again where the page's language changes.
import { inPage, t, Told, visible, whenTold, type Text } from "./language/language.js";

export { visible };

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

type Child = Node | Text;

/** A text's beginning, where it is long. */
export function brief(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** How what the catalogue tells is written again, by the node that it is in. */
const told = new WeakMap<Node, Map<string, () => void>>();

function keep(node: Node, what: string, text: Text, write: (text: string) => void): void {
  const all = told.get(node) ?? new Map<string, () => void>();
  told.set(node, all);
  if (text instanceof Told) {
    const again = () => write(text.render()); // whose values were scrubbed
    all.set(what, again);
    again();
  } else {
    all.delete(what);
    write(visible(text));
  }
}

/** Writes all of the document in the language that it speaks now. */
function writeAgain(): void {
  const nodes = document.createTreeWalker(document, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node: Node | null = document; node; node = nodes.nextNode()) {
    for (const again of told.get(node)?.values() ?? []) again();
  }
}

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, Text> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value instanceof Told) keep(made, name, value, (text) => made.setAttribute(name, text));
    else made.setAttribute(name, value);
  }
  made.append(...children.map((c) => {
    if (c instanceof Node) return c;
    const node = document.createTextNode("");
    keep(node, "", c, (text) => { node.data = text; });
    return node;
  }));
  return made;
}

export function show(id: string, shown: boolean): void {
  byId(id).hidden = !shown;
}

/** Sets text where it changed: screen readers announce what is set again. */
export function say(id: string, text: Text): void {
  const at = byId(id);
  keep(at, "", text, (now) => { if (at.textContent !== now) at.textContent = now; });
}

/** The text of the window. */
export function title(text: Text): void {
  keep(document, "", text, (now) => { document.title = now; });
}

/** Tells what the page's HTML names by a message in the language that it speaks, and goes on doing so where that changes. */
export function tellPage(): void {
  for (const at of document.querySelectorAll<HTMLElement>("[data-say], [data-label]")) {
    const { say: text, label } = at.dataset;
    if (text) keep(at, "", inPage(text, at.textContent ?? ""), (now) => { if (at.textContent !== now) at.textContent = now; });
    if (label) keep(at, "aria-label", inPage(label, at.getAttribute("aria-label") ?? ""), (now) => at.setAttribute("aria-label", now));
  }
  whenTold(writeAgain);
}

/** An error that a person reads in the page's language. */
export class Sorry extends Error {
  constructor(readonly told: Told) { super(told.render()); }
}

/** What an error says: a page's own in its language, others' in English. */
export function message(error: unknown): Told {
  if (error instanceof Sorry) return error.told;
  return t("program.says", { words: brief(error instanceof Error ? error.message : String(error), 300) }); // some quote a file's line
}
