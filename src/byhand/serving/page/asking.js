// Questions to the server.  Answers come whole or as lines with progress between them; the newest
// question wins without stopping short work, so that the server's workers stay warm.

import { t } from "./words.js";

/** What the server refuses, in the parts of the command line's message. */
export class Refusal extends Error {
  constructor(data) {
    super(data.message);
    Object.assign(this, { where: data.where, expected: data.expected, found: data.found, hint: data.hint });
  }
}

const REMEMBERED = 150;
const BUSY = 503, TRIES = 3;
const memory = new Map();

/**
 * The answer to a question; remembered, since the same question has the same answer.
 * @param {{signal?: AbortSignal, progress?: (data: object) => void}} settings
 */
export async function ask(question, request, settings = {}) {
  const body = JSON.stringify(request), key = `${question} ${body}`;
  if (memory.has(key)) {
    const found = memory.get(key);
    memory.delete(key);
    memory.set(key, found);
    return found;
  }
  const send = () => fetch(`/api/${question}`, {
    method: "POST", body, signal: settings.signal,
    headers: { "Content-Type": "application/json", Accept: "application/x-ndjson, application/json;q=0.9" },
  }).catch((error) => { throw error.name === "AbortError" ? error : new Refusal({ message: t("offline"), hint: "byhand serve" }); });
  let response = await send();
  for (let tries = 0; response.status === BUSY && tries < TRIES; tries += 1) { // others have their turn
    await new Promise((done) => { setTimeout(done, 1000 * (Number(response.headers.get("Retry-After")) || 1)); });
    response = await send();
  }
  const found = await read(response, settings.progress);
  memory.set(key, found);
  if (memory.size > REMEMBERED) memory.delete(memory.keys().next().value);
  return found;
}

async function read(response, progress) {
  const lines = response.headers.get("Content-Type")?.includes("ndjson");
  let last = null;
  if (!lines) {
    last = await response.json().catch(() => ({ error: { message: `${response.status} ${response.statusText}` } }));
    if (!last.error) last = { result: last };
  } else {
    for await (const line of linesOf(response.body)) {
      last = JSON.parse(line);
      if (last.progress) progress?.(last.progress);
    }
  }
  if (last?.result !== undefined) return last.result;
  throw new Refusal(last?.error ?? { message: `${response.status} ${response.statusText}` });
}

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter(Boolean);
  }
  if (rest.trim()) yield rest;
}

const PATIENCE = 400; // milliseconds for which work is let finish that nobody waits for any more

/** Asks one question at a time.  Of those that wait, only the newest is asked; the others get undefined. */
export class Newest {
  turn = 0;
  running = null;
  stop = null;

  async ask(question, request, progress) {
    const turn = ++this.turn;
    if (this.running) {
      const before = this.running, stop = this.stop;
      await Promise.race([before, new Promise((done) => { setTimeout(done, PATIENCE); })]);
      if (turn !== this.turn) return undefined;
      stop.abort();
      await before;
      if (turn !== this.turn) return undefined;
    }
    const stop = new AbortController();
    const work = ask(question, request, { signal: stop.signal, progress });
    const running = work.catch(() => {});
    Object.assign(this, { running, stop });
    try {
      const found = await work;
      return turn === this.turn ? found : undefined;
    } catch (error) {
      if (error.name === "AbortError" || turn !== this.turn) return undefined;
      throw error;
    } finally {
      if (this.running === running) this.running = null;
    }
  }

  /** Resolves when nothing is under way, and whoever asked has had the answer. */
  async idle() {
    while (this.running) {
      await this.running;
      await new Promise((done) => { setTimeout(done); });
    }
  }

  /** Stops what is under way; whoever asked gets undefined. */
  cancel() {
    this.turn += 1;
    this.stop?.abort();
  }
}
