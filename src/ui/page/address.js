// The state of a place in the fragment of the address.

/** Puts the state of the current place into the address, without a step in the history. */
export function keep(path, state) {
  history.replaceState(null, "", `#/${path}?${new URLSearchParams(state)}`);
}

/** The same with a step, so that Back returns to the state before. */
export function step(path, state) {
  history.pushState(null, "", `#/${path}?${new URLSearchParams(state)}`);
}

/** A value as a short text for an address. */
export async function pack(value) {
  const bytes = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(JSON.stringify(value)));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** The value of such a text. */
export async function unpack(text) {
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), bytes)));
}

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
