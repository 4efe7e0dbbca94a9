// The manifest of a training program: docs/WASM.md, "The section starling.program".

// read returns the value of CBOR (RFC 8949) at a place, and where it ends: of what manifests
// hold, which are integers, texts, arrays, booleans.
function read(view, at) {
  const first = view.getUint8(at++);
  const [major, short] = [first >> 5, first & 31];
  let n = short;
  if (short === 24) n = view.getUint8(at);
  else if (short === 25) n = view.getUint16(at);
  else if (short === 26) n = view.getUint32(at);
  else if (short === 27) n = Number(view.getBigUint64(at));
  else if (short > 27) throw new Error(`manifest: byte ${first} at ${at - 1}`);
  if (short >= 24) at += 1 << (short - 24);
  switch (major) {
    case 0: return [n, at];
    case 1: return [-1 - n, at];
    case 3: return [new TextDecoder().decode(new Uint8Array(view.buffer, view.byteOffset + at, n)), at + n];
    case 4: {
      const list = [];
      for (let i = 0, value; i < n; i++) {
        [value, at] = read(view, at);
        list.push(value);
      }
      return [list, at];
    }
    case 7: if (short === 20 || short === 21) return [short === 21, at];
  }
  throw new Error(`manifest: byte ${first} at ${at - 1}`);
}

// tensors writes series out: in round r names have r more in their first number, and stand r steps on.
const tensors = (list) => list.flatMap(([rounds, series]) => Array.from({ length: rounds }, (_, r) => series.map(
  ([name, dtype, shape, offset, nf4, moves]) => ({
    name: r ? name.replace(/\d+/, (n) => Number(n) + r) : name, dtype, shape, offset: offset + r * (moves[0] ?? 0),
    nf4: nf4.length ? { block: nf4[0], scales: nf4[1] + r * (moves[1] ?? 0) } : undefined,
  }))).flat());
const segment = ([name, flops, when = 0]) => ({ name, flops, when }); // when: a byte that is not 0 where it runs

// manifestOf reads the manifest of a compiled module.
export function manifestOf(module) {
  const sections = WebAssembly.Module.customSections(module, "starling.program");
  if (sections.length !== 1) throw new Error(`${sections.length} starling.program sections, want 1`);
  const [[format, name, compiler, host, flops, fused, arena, inputs, outputs, state, frozen, prepare, segments, repeats, nests, products]] = read(new DataView(sections[0]), 0);
  if (format !== 9) throw new Error(`a program of format ${format}, this reads 9`);
  return {
    format, name, compiler, host, flops, fused, arena: { offset: arena[0], size: arena[1] },
    inputs: tensors(inputs), outputs: tensors(outputs), state: tensors(state), frozen: tensors(frozen),
    prepare: prepare.map(segment), segments: segments.map(segment),
    repeats: repeats.map(([first, count, rounds]) => ({ first, count, rounds })),
    products: products.map(([first, count, a, b, c, nf4, nest, parts, moves]) => {
      const [batch, rows, cols, terms] = nests[nest];
      return { first, count, a, b, c, nf4, batch, rows, cols, terms, parts, moves };
    }),
  };
}

// callsOf lists a step's segments with all rounds of repeats: the export's number, and the round that it is told.
export function callsOf({ segments, repeats }) {
  const calls = [];
  let at = 0;
  const upTo = (end) => {
    for (; at < end; at++) calls.push({ segment: at, round: 0, when: segments[at].when });
  };
  for (const { first, count, rounds } of repeats) {
    upTo(first);
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < count; i++) calls.push({ segment: first + i, round, when: segments[first + i].when });
    }
    at = first + count;
  }
  upTo(segments.length);
  return calls;
}
