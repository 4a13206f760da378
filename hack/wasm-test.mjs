// Compares the answers of the WebAssembly module with those of `statusgate ui`: node hack/wasm-test.mjs MODULE STATUSGATE
//
// Every recorded review in tests/fixtures, and two states of every convention.

import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { engine } from "../src/ui/wasm/engine.js";

const [path, program] = process.argv.slice(2);
const server = spawn(program, ["ui", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "inherit", "pipe"] });
process.on("exit", () => server.kill());
const [first] = await new Promise((resolve) => createInterface(server.stderr).once("line", (line) => resolve([line])));
const url = first.match(/http:\S+/)[0];

const inModule = await engine(WebAssembly.compile(readFileSync(path)));
async function inServer(name, request) {
  const response = await fetch(`${url}calls/${name}`, { method: "POST", body: request });
  if (!response.ok) throw new Error(`${name}: ${response.status} ${await response.text()}`);
  return response.text();
}

let [compared, verdicts] = [0, 0];
async function same(what, name, request) {
  const text = JSON.stringify(request);
  const [expected, found] = [await inServer(name, text), inModule(name, text)];
  if (found !== expected) {
    console.error(`wasm-test: ${what}: the answers to ${name} differ\n  ui:   ${expected}\n  wasm: ${found}`);
    process.exitCode = 1;
  }
  compared += 1;
  return JSON.parse(found);
}

const now = "2026-11-20T12:00:00Z";
const reviews = readdirSync("tests/fixtures/reviews", { recursive: true }).filter((name) => name.endsWith("review.json"));
for (const name of reviews.sort()) {
  const object = readFileSync(join("tests/fixtures/reviews", name), "utf8");
  const judged = await same(name, "judge", { object, now });
  if (judged.judged) verdicts += 1;
  else if (!judged.error && !judged.mistakes.length) throw new Error(`${name}: neither a verdict nor a mistake`);
  if (compared % 10 === 0) await same(name, "case", { object, now });
}
const { conventions } = await same("all", "conventions", {});
for (const { name, rules } of conventions) {
  // A debug build needs seconds for the pages of others.
  if (["appcat", "gateway-api", "kstatus", "metav1"].includes(name)) await same(name, "explain", { convention: name });
  const { facts } = await same(name, "state", { convention: name });
  await same(name, "state", { convention: name, answers: facts.map(() => 0) });
  for (const rule of rules.slice(0, 1)) await same(name, "rule", { rule });
}
await same("StatusPolicy", "schema", { kind: "StatusPolicy" });
await same("a mistake", "lint", { documents: "kind: StatusPolicy\napiVersion: statusgate.dev/v1alpha1\nspec: {}\n" });
await same("an unknown call", "nothing", {});
await same("no cluster", "audit", {});
if (verdicts < 50) throw new Error(`only ${verdicts} verdicts`);
if (!process.exitCode) console.log(`wasm-test: ${compared} answers are the same; ${reviews.length} recorded reviews, ${verdicts} of them with a verdict`);
process.exit();
