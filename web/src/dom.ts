// The page's elements. Text reaches the page as text nodes only: nothing that a
// coordinator or a file says is ever parsed as markup.

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

type Child = Node | string;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string> = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function show(id: string, shown: boolean): void {
  byId(id).hidden = !shown;
}

/** Sets text where it changed: screen readers announce what is set again. */
export function say(id: string, text: string): void {
  const at = byId(id);
  if (at.textContent !== text) at.textContent = text;
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
