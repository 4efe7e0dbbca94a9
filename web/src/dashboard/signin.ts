// Signing in by the coordinator's OpenID issuer, and out. What comes back from there is a session's
// token behind the page's #, taken as any other.
import { byId, say, show } from "../dom.js";
import { goesToSignIn, isSession, keepToken } from "../token.js";

/** Offers what there is for a token, by then: where none is good, an issuer if there is one. */
export async function offerSignIn(token: string, denied: boolean): Promise<void> {
  show("sign-out", !denied && isSession(token));
  if (!denied) return;
  try {
    const at = (await (await fetch("v1/oidc/issuer.json", { cache: "no-store" })).json()) as { issuer: string; ready: boolean } | null;
    if (!at) return;
    const link = byId<HTMLAnchorElement>("sign-in-link");
    say("sign-in-link", `Sign in with ${at.issuer}`);
    if (at.ready) link.href = "v1/oidc/login";
    else link.removeAttribute("href");
    say("sign-in-why", at.ready ? "" : "It cannot be reached now; tokens work.");
    show("sign-in", true);
  } catch { /* the page says itself that the coordinator is gone */ }
}

/** Ends the session, here and at the coordinator, whatever the network does. */
export function readyToSignOut(token: () => string, out: () => void): void {
  byId("sign-in-link").addEventListener("click", goesToSignIn);
  byId("sign-out").addEventListener("click", () => {
    void fetch("v1/oidc/logout", { method: "POST", headers: { Authorization: `Bearer ${token()}` } }).catch(() => undefined).then(() => {
      keepToken("");
      out();
    });
  });
}
