/** One request, sent until an answer comes that can be used or the deadline has passed. */

import type { Problem } from "./api.js";
import { Deciders } from "./deciders.js";
import { ServiceError, ServiceUnavailable, SettingError } from "./errors.js";
import { isAnswer, isWorthAnother, msUntil, pauseMs } from "./retries.js";
import type { Answer, Outcome, Retries } from "./retries.js";
import type { Send } from "./transport.js";

const LONGEST_MS = 2 ** 31 - 1; // a timer of more is over at once

/** What is asked, how its answer is read, and when it must be there. */
export interface Request<T> {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: string | undefined;
  /** Return what the answer says; whatever it throws means that the answer cannot be read. */
  readonly read: (answer: unknown) => T;
  readonly end?: number | undefined;
  readonly tries?: number | undefined;
  readonly outlivesPage?: boolean;
}

/** What a requester is made of. */
export interface RequesterParts {
  readonly urls: readonly string[];
  readonly send: Send;
  readonly timeoutMs: number;
  readonly retries: Required<Retries>;
  readonly clock?: () => number;
  readonly sleep?: (ms: number) => Promise<void>;
}

/** Sends requests to one of some addresses, and counts what a caller may not notice. */
export class Requester {
  readonly counts: Record<string, number> = {};
  readonly #parts: Required<RequesterParts>;
  readonly #deciders: Deciders;

  constructor(parts: RequesterParts) {
    this.#parts = { clock: () => performance.now(), sleep, ...parts };
    this.#deciders = new Deciders(parts.urls, this.#parts.clock);
    this.end(); // throws for a time that is none
  }

  /** Return the point on the clock at which a call that begins now must end. */
  end(ms: number = this.#parts.timeoutMs): number {
    if (!(ms > 0 && ms <= LONGEST_MS)) {
      throw new SettingError(
        `A call needs some time, up to 24 days: got timeoutMs: ${ms}. Give the milliseconds after ` +
          `which an answer is of no use.`,
      );
    }
    return this.#parts.clock() + ms;
  }

  count(what: string, number = 1): void {
    if (number > 0) this.counts[what] = (this.counts[what] ?? 0) + number;
  }

  /**
   * Send a request until an answer comes that can be used, or give up at the deadline.
   *
   * A try is one round of all deciders, without a pause between them.
   */
  async request<T>(request: Request<T>): Promise<T> {
    const { clock, sleep, retries } = this.#parts;
    const { end = this.end(), tries = retries.tries } = request;
    let outcome: Outcome = { why: "no time was left to ask" };
    for (let tried = 0; tried < tries; tried++) {
      const rests: number[] = [];
      const urls = this.#deciders.order();
      for (const [n, url] of urls.entries()) {
        const left = end - clock();
        if (left <= 0) throw this.#unavailable(outcome);
        const isLast = tried + 1 === tries && n + 1 === urls.length;
        this.count("retries", Number(tried + n > 0));
        outcome = await this.#send(request, url, isLast ? left : left * retries.share);
        const found = readBy(request.read, outcome);
        if ("value" in found) {
          this.#deciders.noteWell(url);
          return found.value;
        }
        outcome = found.outcome;
        rests.push(this.#noteFailure(url, outcome));
      }
      const pause = Math.min(...rests) + pauseMs(retries, tried);
      if (tried + 1 === tries || clock() + pause >= end) break;
      await sleep(pause);
    }
    throw this.#unavailable(outcome);
  }

  #send<T>(request: Request<T>, url: string, ms: number): Promise<Outcome> {
    const { method, path, body, outlivesPage = false } = request;
    return this.#parts.send({ method, url: url + path, body, ms, outlivesPage });
  }

  /** Note a failure, and return the milliseconds that it asks to wait; throw a rejection. */
  #noteFailure(url: string, outcome: Outcome): number {
    if (isAnswer(outcome) && !isWorthAnother(outcome)) throw rejection(outcome, url);
    const rest = isAnswer(outcome) ? msUntil(outcome.retryAfter) : 0;
    this.#deciders.noteFailure(url, rest);
    return rest;
  }

  #unavailable(outcome: Outcome): ServiceUnavailable {
    const [status, problem] = problemIn(outcome);
    const last = isAnswer(outcome) ? `${status} ${problem.detail ?? ""}`.trim() : outcome.why;
    return new ServiceUnavailable(
      `The decision service needs to answer in time: ${this.#deciders} did not (the last try: ` +
        `${last}). See that it is ready; a fallback for selects and a spool for rewards bridge ` +
        `such times.`,
      status,
      problem,
    );
  }
}

type Found<T> = { readonly value: T } | { readonly outcome: Outcome };

function readBy<T>(read: (answer: unknown) => T, outcome: Outcome): Found<T> {
  if (!isAnswer(outcome) || outcome.status < 200 || outcome.status > 299) return { outcome };
  try {
    return { value: read(JSON.parse(outcome.body)) };
  } catch (error) {
    return { outcome: { why: `an answer that cannot be read: ${(error as Error).message}` } };
  }
}

function rejection(outcome: Answer, url: string): ServiceError {
  const [status, problem] = problemIn(outcome);
  // a browser hides where a redirect leads, and gives it the status 0
  const said = status === 0 ? "with a redirect" : String(status);
  const detail = problem.detail ?? `The service answered ${said} to this request.`;
  const fix = problem.fix ?? `Check that ${url} is the service's address.`;
  return new ServiceError(`${detail} ${fix}`, status, problem);
}

/** Return the status, and what the service said of it (RFC 9457) where it said something. */
function problemIn(outcome: Outcome): [number, Partial<Problem>] {
  if (!isAnswer(outcome)) return [0, {}];
  try {
    const found: unknown = JSON.parse(outcome.body);
    return [outcome.status, typeof found === "object" && found !== null ? found : {}];
  } catch {
    return [outcome.status, {}];
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
