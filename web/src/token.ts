// The operator's token, on all pages of one server.
const tokenKey = "starling-admin";

// A session's token is taken from the address only in a tab that went to sign in: a link of somebody
// else's would have its visitor act under that one's name.
const signingKey = "starling-signing-in";

export const isSession = (token: string) => token.startsWith("starling-session-");

export function goesToSignIn(): void {
  try { sessionStorage.setItem(signingKey, "1"); } catch { /* it is asked again when it comes back */ }
}

function wasSigningIn(): boolean {
  try {
    const was = sessionStorage.getItem(signingKey) !== null;
    sessionStorage.removeItem(signingKey);
    return was;
  } catch { return false; }
}

/** Taken from the address once, then kept for this tab only. */
export function takeToken(): string {
  const given = location.hash.slice(1);
  if (given) {
    history.replaceState(null, "", location.pathname);
    if (!isSession(given) || wasSigningIn()) return keepToken(given);
  }
  try { return sessionStorage.getItem(tokenKey) ?? ""; } catch { return ""; }
}

export function keepToken(token: string): string {
  try { sessionStorage.setItem(tokenKey, token); } catch { /* the next reload asks again */ }
  return token;
}
