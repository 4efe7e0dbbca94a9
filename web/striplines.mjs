// Go keeps every function's name, and which file and line each of its instructions
// came from. Only the text of a panic's trace is made of them: without them it has "?"
// for file and line, and names the runtime's functions and ours alone. They are noise
// to a compressor, one thirteenth of the client. Nothing moves: unused bytes become zeros.
// The layout is that of runtime.pcHeader and runtime._func, Go 1.20 and later.

/** Go's magic number of the table, four bytes more of its header: no padding, code in steps of 1, pointers of 8 bytes. */
const header = Buffer.from([0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8]);

const entry = { name: 4, pcsp: 16, pcfile: 20, pcln: 24, npcdata: 28, cuOffset: 32, startLine: 36, pcdata: 44 };

/** The functions whose names stay: the runtime looks at its own and two of reflect's, and a trace is read for ours. */
const named = /^(internal\/)?runtime|^reflect\.(makeFuncStub|methodValueCall)$|^main\.|starling/;

const mostTables = 8; // of pcdata; Go has 5

/** Clears the tables of files and lines, and others' names, in a copy of a Go module whose data is one segment. */
export function stripLines(module) {
  const bytes = Buffer.from(module);
  const head = bytes.indexOf(header);
  if (head < 0) throw new Error("no Go function table: its layout has changed");
  if (bytes.indexOf(header, head + 1) >= 0) throw new Error("more than one Go function table");
  const field = (i) => Number(bytes.readBigUInt64LE(head + 8 + 8 * i));
  const count = field(0);
  const [names, units, files, values, functions] = [3, 4, 5, 6, 7].map((i) => head + field(i));
  if (!(head < names && names < units && units < files && files < values && values < functions && functions < bytes.length)) {
    throw new Error("the parts of Go's function table do not follow each other");
  }
  const used = new Uint8Array(functions - values);
  used[0] = 1; // offset 0 means none
  const keep = (offset) => {
    if (offset !== 0) used.fill(1, offset, tableEnd(bytes, values + offset, functions) - values);
  };
  for (let i = 0; i < count; i++) {
    const at = functions + bytes.readUInt32LE(functions + 8 * i + 4);
    const tables = bytes.readUInt32LE(at + entry.npcdata);
    if (tables > mostTables) throw new Error(`a function with ${tables} tables: the layout has changed`);
    keep(bytes.readUInt32LE(at + entry.pcsp));
    for (let t = 0; t < tables; t++) keep(bytes.readUInt32LE(at + entry.pcdata + 4 * t));
    for (const name of ["pcfile", "pcln", "cuOffset", "startLine"]) bytes.writeUInt32LE(0, at + entry[name]);
  }
  for (let i = 0; i < used.length; i++) if (!used[i]) bytes[values + i] = 0;
  bytes.fill(0, units, values); // which file is which, and their names
  for (let at = names; at < units;) {
    const end = bytes.indexOf(0, at);
    if (end > at && !named.test(bytes.toString("latin1", at, end))) bytes.fill(0, at, end);
    at = end + 1;
  }
  for (let i = 0; i < count; i++) { // the name at 0 is empty, too
    const at = functions + bytes.readUInt32LE(functions + 8 * i + 4) + entry.name;
    if (bytes[names + bytes.readInt32LE(at)] === 0) bytes.writeInt32LE(0, at);
  }
  return bytes;
}

/** The end of a table: pairs of varints, a step of value and one of place, until a step of value that is 0 and not the first. */
function tableEnd(bytes, at, end) {
  const skip = () => {
    for (;;) {
      if (at >= end) throw new Error("a table of Go's function table has no end");
      const byte = bytes[at++];
      if (byte < 128) return byte;
    }
  };
  for (let first = true; ; first = false) {
    const begin = at;
    const last = skip();
    if (last === 0 && at - begin === 1 && !first) return at;
    skip();
  }
}
