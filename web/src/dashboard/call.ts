// Requests of the operator's endpoints. The token is a header, which no page of another
// origin and no form can send.
export interface Call {
  /** Asks; with a body (an object, or the reason of an act) it does. */
  (path: string, body?: object | string): Promise<Response>;
}

/** A token that is none, or none any more. */
export class Denied extends Error {}

/** A coordinator, or what is before it, that cannot answer now. */
export class Unavailable extends Error {}

/** Asks with the token that is given by then; who is refused hears why. */
export function caller(token: () => string): Call {
  return async (path, body) => {
    const said = typeof body === "string" ? { reason: body } : body;
    const response = await fetch(`v1/admin/${path}`, {
      cache: "no-store", headers: { Authorization: `Bearer ${token()}` },
      ...(said === undefined ? {} : { method: "POST", body: JSON.stringify(said) }),
    });
    if (!response.ok) {
      const why = (await response.text()).trim() || `the coordinator answers ${response.status}`;
      if (response.status === 401) throw new Denied(why);
      throw response.status >= 500 ? new Unavailable(why) : new Error(why);
    }
    return response;
  };
}

/** Why a request came to nothing: what a browser says of that helps nobody. */
export const whyLost = (error: unknown): string =>
  error instanceof TypeError ? "the coordinator does not answer" : error instanceof Error ? error.message : String(error);
