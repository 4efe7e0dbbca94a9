// The operator's token, on all pages of one server.
const tokenKey = "starling-admin";

/** Taken from the address once, then kept for this tab only. */
export function takeToken(): string {
  const given = location.hash.slice(1);
  if (given) {
    history.replaceState(null, "", location.pathname);
    return keepToken(given);
  }
  try { return sessionStorage.getItem(tokenKey) ?? ""; } catch { return ""; }
}

export function keepToken(token: string): string {
  try { sessionStorage.setItem(tokenKey, token); } catch { /* the next reload asks again */ }
  return token;
}
