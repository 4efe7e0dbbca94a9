// Asks for a visitor's consent and takes part, from a React app: <Consent url="https://fl.example.org" token="starling2_..." />
import type { Participation } from "@starling-fl/edge";
import "@starling-fl/edge/consent";
import { createElement, useEffect, useRef } from "react";

export function Consent({ onFinished, ...attributes }: { url: string; token?: string; lang?: string; onFinished?: (p: Participation) => void }) {
  const at = useRef<HTMLElementTagNameMap["starling-consent"]>(null);
  useEffect(() => {
    const element = at.current!, finished = (e: Event) => onFinished?.((e as CustomEvent<Participation>).detail);
    element.addEventListener("finished", finished);
    return () => element.removeEventListener("finished", finished);
  }, [onFinished]);
  return createElement("starling-consent", { ref: at, ...attributes });
}
