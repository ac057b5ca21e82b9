/** When a request is sent again, and how long to wait before that. */

import { SettingError } from "./errors.js";

/** What the service answered. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string;
}

/** Why none came. */
export interface NoAnswer {
  readonly why: string;
}

export type Outcome = Answer | NoAnswer;

/**
 * How often a request is sent, and the pauses in between.
 *
 * A pause is drawn evenly between zero and `firstMs`, and up to twice as long after each try, at
 * most `mostMs`. All tries but the last may take `share` of the time that is left until the
 * deadline. `random` draws from [0, 1).
 */
export interface Retries {
  readonly tries?: number;
  readonly firstMs?: number;
  readonly mostMs?: number;
  readonly share?: number;
  readonly random?: () => number;
}

/** Return retries with all that was left out, if they can be used. */
export function checkRetries(given: Retries = {}): Required<Retries> {
  const { tries = 4, firstMs = 20, mostMs = 1_000, share = 0.5, random = Math.random } = given;
  const said = JSON.stringify(given);
  if (!(tries >= 1 && Number.isInteger(tries) && 0 <= firstMs && firstMs <= mostMs)) {
    throw new SettingError(
      `Retries need one try or more, and pauses of 0 ms up to mostMs: got ${said}. Give tries: 1 ` +
        `to send each request once.`,
    );
  }
  if (!(share > 0 && share <= 1)) {
    throw new SettingError(
      `A try needs a share of the time that is left, above 0 and up to 1: got ${said}. Leave it ` +
        `at 0.5 if unsure.`,
    );
  }
  return { tries, firstMs, mostMs, share, random };
}

/** Return the milliseconds to wait after so many tries, on top of what the service asks for. */
export function pauseMs(retries: Required<Retries>, tried: number): number {
  return retries.random() * Math.min(retries.firstMs * 2 ** tried, retries.mostMs);
}

/** Return whether an outcome is an answer. */
export function isAnswer(outcome: Outcome): outcome is Answer {
  return "status" in outcome;
}

/** Return whether the same request may fare better a moment later. */
export function isWorthAnother(outcome: Outcome): boolean {
  if (!isAnswer(outcome)) return true;
  return [408, 429].includes(outcome.status) || outcome.status >= 500;
}

/** Read the header Retry-After, seconds or a date, as milliseconds; 0 where it says nothing. */
export function msUntil(retryAfter: string, now: number = Date.now()): number {
  if (retryAfter.trim() === "") return 0;
  const seconds = Number(retryAfter);
  const wait = Number.isNaN(seconds) ? Date.parse(retryAfter) - now : 1_000 * seconds;
  return Number.isNaN(wait) ? 0 : Math.max(0, wait);
}
