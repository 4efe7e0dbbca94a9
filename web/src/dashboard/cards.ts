// Sections that fold. On a narrow screen they begin folded, each with a line that says
// the most important of what is in it; who folds or unfolds one finds it so again.
import { byId, say } from "../dom.js";

const prefix = "card-";
const key = "starling-cards";
const narrow = matchMedia("(max-width: 52rem)");

/** Cards whose folding was chosen, and how. */
function chosen(): Record<string, boolean> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? "{}");
    return typeof kept === "object" && kept ? kept as Record<string, boolean> : {};
  } catch {
    return {}; // no storage, or not ours
  }
}

/** Folds what is to be folded; call it once. */
export function foldCards(): void {
  const kept = chosen();
  for (const card of document.querySelectorAll<HTMLDetailsElement>(`details[id^=${prefix}]`)) {
    const name = card.id.slice(prefix.length);
    card.open = kept[name] === undefined ? !narrow.matches && !card.classList.contains("folded") : kept[name] === true;
    card.querySelector("summary")?.addEventListener("click", () => {
      try { localStorage.setItem(key, JSON.stringify({ ...chosen(), [name]: !card.open })); } catch { /* the next visit begins anew */ }
    });
  }
}

/** The line beside a card's title. */
export function gist(name: string, text: string): void {
  say(`gist-${name}`, text);
}

/** Unfolds a card, for who is led to it. */
export function unfold(name: string): void {
  byId<HTMLDetailsElement>(`${prefix}${name}`).open = true;
}
