// Numbers as text, as the page's language writes them.
import type { Guarantee } from "./api.js";
import { number } from "./language/language.js";

const byteUnits = [["byte", 1], ["kilobyte", 1e3], ["megabyte", 1e6], ["gigabyte", 1e9]] as const;

export function bytes(n: number): string {
  const [unit, size] = byteUnits.findLast(([, s]) => n >= s) ?? byteUnits[0];
  const fraction = unit === "byte" || (unit === "kilobyte" && n >= 1e5) ? 0 : unit === "gigabyte" ? 2 : 1;
  return number(n / size, { style: "unit", unit, unitDisplay: unit === "byte" ? "long" : "short", minimumFractionDigits: fraction, maximumFractionDigits: fraction });
}

/** A number of things, in English; the pages' catalogue has its own. */
export function count(n: number, one: string, many = `${one}s`): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}

export function percent(share: number): string {
  return number(share, { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
}

export function duration(seconds: number, unitDisplay: "long" | "short" = "short"): string {
  const of = (n: number, unit: string) => number(n, { style: "unit", unit, unitDisplay });
  if (seconds < 60) return of(Math.max(0, Math.round(seconds)), "second");
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return of(minutes, "minute");
  const hours = of(Math.floor(minutes / 60), "hour");
  return minutes % 60 ? `${hours} ${of(minutes % 60, "minute")}` : hours;
}

/** An epsilon is never shown without its delta. */
export function bound(g: Guarantee): string {
  return `ε ${significant(g.epsilon)} (δ ${power(g.delta)})`;
}

export function significant(x: number): string {
  if (x >= 1e5) return power(x);
  return x >= 1000 ? number(Math.round(x)) : number(x, { maximumSignificantDigits: 3 });
}

export function power(x: number): string {
  const [digits, exponent] = x.toExponential(0).split("e");
  const raised = Number(exponent).toString().replace(/[-0-9]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)] ?? c);
  return `${digits === "1" ? "" : `${digits}·`}10${raised}`;
}

/** What an epsilon lets somebody conclude, in English words. */
export function meaning(g: Guarantee): string {
  if (g.epsilon <= 0) return "nothing";
  const factor = Math.exp(g.epsilon);
  if (factor > 1e6) return "no useful limit to what can be concluded";
  return `whoever studies the model can be at most ${significant(factor)} times surer that one of them took part`;
}

/** Above this, a guarantee is not worth being called protection. */
export const weakFrom = 10;
