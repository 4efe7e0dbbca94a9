// The page after its coordinator: answers for it where nobody else does. The page itself puts into the
// cache what it is made of (join/keep.ts); nothing else is looked at: no figures, no blobs, no tokens.
// A network that answers comes first, so that no old code runs beside a coordinator that has newer.

interface Asked extends Event { // which the DOM's types leave out
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}
declare function skipWaiting(): Promise<void>;
declare const clients: { claim(): Promise<void> };

const patience = 10_000; // ms for an answer: a machine that is switched off gives none
const gone = [404, 410, 502, 503, 504]; // of a proxy that is left, or of another's machine

const scope = new URL("./", location.href);

addEventListener("install", () => void skipWaiting());
addEventListener("activate", () => void clients.claim());
addEventListener("fetch", (event) => {
  const { request, respondWith } = event as Asked, { origin, pathname } = new URL(request.url);
  const page = request.mode === "navigate" && pathname === scope.pathname;
  if (request.method !== "GET" || origin !== scope.origin || !page && !pathname.startsWith(`${scope.pathname}assets/`)) return;
  // By its path alone: what is behind ? or # may be a token.
  respondWith.call(event, answer(request, origin + pathname));
});

async function answer(request: Request, path: string): Promise<Response> {
  const copy = await caches.match(path, { cacheName: `starling-page ${scope.pathname}` }).catch(() => undefined);
  const said = fetch(request);
  if (!copy) return said;
  const late = new Promise<undefined>((over) => setTimeout(over, patience));
  const first = await Promise.race([said, late]).catch(() => undefined);
  return first && !gone.includes(first.status) ? first : copy;
}
