// Takes part in a Starling job from a React app: <Join url="https://fl.example.org" />
import { browserTrust, join, StarlingError } from "@starling-fl/edge";
import { useEffect, useState } from "react";

export function Join({ url, trustLocal }: { url: string; trustLocal?: boolean }) {
  const [file, choose] = useState<File>();
  const [said, say] = useState(""), [running, run] = useState<AbortController>();
  useEffect(() => () => running?.abort(), [running]); // who leaves the page leaves the job

  async function start(data: File, leave = new AbortController()) {
    run(leave);
    try {
      const part = await join({ url, data, trustLocal, signal: leave.signal,
        onChange: (p) => say(`${p.event?.state ?? p.standing}, ${p.totals.rounds} rounds`) });
      say(`done after ${part.totals.rounds} rounds`);
      part.close();
    } catch (error) {
      say(error instanceof StarlingError ? `${error.code}: ${error.message}` : "left");
    }
    run(undefined);
  }

  return <section>
    <p>{browserTrust}</p>
    <input type="file" accept=".tsv,.csv,.jsonl" aria-label="Your examples" onChange={(e) => choose(e.target.files?.[0])} />
    <button disabled={!file || !!running} onClick={() => file && start(file)}>Join</button>
    <button disabled={!running} onClick={() => running?.abort()}>Leave</button>
    <output>{said}</output>
  </section>;
}
