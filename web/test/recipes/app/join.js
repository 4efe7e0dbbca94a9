// What a site does with the package: one call. Its page's title says what came of it.
import { join } from "@starling-fl/edge";

export async function start(base, say) {
  const at = new URL("?", base), url = new URL(base).searchParams.get("coordinator");
  say("runs");
  try {
    const examples = await (await fetch(new URL("data.jsonl", at))).blob();
    const part = await join({ url, trustLocal: true, data: new File([examples], "examples.jsonl") });
    const [guess] = await part.predict("green electricity, kWh");
    say(`${part.standing} ${part.totals.rounds} ${guess.label}`);
    part.close();
  } catch (error) {
    say(`${error.code}: ${error.message}`);
  }
}
