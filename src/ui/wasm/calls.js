// The calls of the engine in this page, for the documentation site. It takes the place of ../page/calls.js.

import { engine } from "./engine.js";

let running;

/** Answers a call, or throws an Error with a text for the user. */
export async function call(name, request = {}, signal = undefined) {
  running ??= engine(WebAssembly.compileStreaming(fetch("engine.wasm")));
  let answer;
  try {
    const answerTo = await running;
    signal?.throwIfAborted();
    answer = JSON.parse(answerTo(name, JSON.stringify(request)));
  } catch (error) {
    if (error.name === "AbortError") throw error;
    running = undefined;
    throw new Error(`The engine failed: ${error.message}`);
  }
  if (answer.error) throw new Error(answer.error);
  return answer;
}
