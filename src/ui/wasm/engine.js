// The engine as a WebAssembly module: crates/statusgate-wasm.

/** Answers calls with an instance of a compiled module. Both texts are JSON. */
export async function engine(compiled) {
  const { exports } = await WebAssembly.instantiate(await compiled, {});
  return (name, request) => {
    const [called, given] = [name, request].map((text) => new TextEncoder().encode(text));
    const start = exports.reserve(called.length + given.length);
    const memory = new Uint8Array(exports.memory.buffer, start, called.length + given.length);
    memory.set(called);
    memory.set(given, called.length);
    const from = exports.answer(called.length);
    const bytes = new Uint8Array(exports.memory.buffer, from, exports.answer_bytes());
    return new TextDecoder().decode(bytes);
  };
}
