// A line between browser and coordinator that counts, and that can be cut.
import { createServer, connect } from "node:net";

/** Relays to a port, or to whatever line.port is set to later, counts what comes down and notes which blobs are asked for; cut() ends all connections and lets no other begin until mend(). */
export async function relay(t, port, host = "127.0.0.1") {
  const line = { down: 0, whole: true, port, blobs: new Set() };
  const sockets = new Set();
  const server = createServer((from) => {
    if (!line.whole) return from.destroy();
    const to = connect(line.port, "127.0.0.1");
    for (const s of [from, to]) {
      sockets.add(s);
      s.on("error", () => { from.destroy(); to.destroy(); });
      s.on("close", () => { sockets.delete(s); from.destroy(); to.destroy(); });
    }
    to.on("data", (d) => { line.down += d.length; });
    from.on("data", (d) => { for (const [, path] of d.toString("latin1").matchAll(/^GET (\/blob\/[0-9a-f]+) /gm)) line.blobs.add(path); });
    from.pipe(to).pipe(from);
  });
  line.cut = () => {
    line.whole = false;
    for (const s of sockets) s.destroy();
  };
  line.mend = () => { line.whole = true; };
  await new Promise((resolve) => server.listen(0, host, resolve));
  t.after(() => {
    line.cut();
    server.close();
  });
  line.url = `http://${host}:${server.address().port}/`;
  return line;
}
