// The page's elements. Text reaches the page as text nodes only: nothing that a
// coordinator or a file says is ever parsed as markup.

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

type Child = Node | string;

/** Turns the text around it, or is not to be seen: control characters, and those that override a direction. */
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** A coordinator's or a file's words, which cannot change how others are read. */
export const visible = (text: string) => text.replace(hidden, "\ufffd");

/** A text's beginning, where it is long. */
export function brief(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most).replace(/[\ud800-\udbff]$/, "")}…`;
}

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map((c) => typeof c === "string" ? visible(c) : c));
  return made;
}

export function show(id: string, shown: boolean): void {
  byId(id).hidden = !shown;
}

/** Sets text where it changed: screen readers announce what is set again. */
export function say(id: string, text: string): void {
  const at = byId(id), shown = visible(text);
  if (at.textContent !== shown) at.textContent = shown;
}

export function message(error: unknown): string {
  return brief(error instanceof Error ? error.message : String(error), 300); // some quote a file's line
}
