// The same in Node, Deno or Bun: client.mjs COORDINATOR FILE FOLDER
import { readFileSync } from "node:fs";
import process from "node:process";
import { join } from "@starling-fl/edge";

const [url, file, folder] = process.argv.slice(2);
try {
  const part = await join({ url, folder, trustLocal: true, data: new File([readFileSync(file)], "examples.jsonl") });
  const [guess] = await part.predict("green electricity, kWh");
  console.log(`${part.standing} ${part.totals.rounds} ${guess.label}; ${part.kept ? "kept" : "not kept"}: ${part.given?.[0]?.committed}`);
  part.close();
} catch (error) {
  console.log(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
