// Trusted Types: a page whose Content-Security-Policy says `require-trusted-types-for 'script'` starts a worker only from
// an address that a named policy made. It allows ours by `trusted-types starling`.

interface Policy {
  createScriptURL(address: string): string;
}

/** The policy's name, for `trusted-types`. */
export const policyName = "starling";

let policy: Policy | undefined;

/** The address of one of this package's scripts, as the page's rules want it. Nothing else goes through the policy. */
export function trusted(address: string): string {
  const { trustedTypes, starlingPolicy } = globalThis as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy }; starlingPolicy?: Policy };
  if (!trustedTypes) return address;
  policy ??= starlingPolicy ?? trustedTypes.createPolicy(policyName, { createScriptURL: (script) => script });
  return policy.createScriptURL(address);
}
