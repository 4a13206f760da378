// The calls of the engine. This is the only module that knows where it runs.

/** Until a program counts as gone that does not answer, in milliseconds. */
const PATIENCE = 60_000;

const token = new URLSearchParams(location.search).get("token");

/** Answers a call, or throws an Error with a text for the user. */
export async function call(name, request = {}, signal = undefined) {
  const headers = { "content-type": "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  const patience = AbortSignal.timeout(PATIENCE);
  const options = { method: "POST", headers, body: JSON.stringify(request), signal: signal ? AbortSignal.any([signal, patience]) : patience };
  let response;
  try {
    response = await fetch(`calls/${name}`, options);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw Object.assign(new Error("`statusgate ui` does not answer. Is it still running?"), { isGone: true });
  }
  if (!response.ok) throw new Error((await response.text()) || `HTTP ${response.status}`);
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error);
  return answer;
}
