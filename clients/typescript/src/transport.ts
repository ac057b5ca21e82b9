/** Requests whose whole exchange ends in time: connecting, sending and reading the answer. */

import type { Outcome } from "./retries.js";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A request, and how many milliseconds to wait for the whole of its answer. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  readonly body: string | undefined;
  readonly ms: number;
  /** Whether the browser is to finish it although the page is left. */
  readonly outlivesPage: boolean;
}

export type Send = (sent: Sent) => Promise<Outcome>;

const LARGEST_TO_OUTLIVE = 60_000; // bytes; browsers refuse more than 64 KiB

/** Return a function that sends requests by `fetch`, as who has this key. */
export function sendBy(fetch: Fetch, key: string | undefined): Send {
  const headers: Record<string, string> = {
    "Content-Type": "application/json",
    Accept: "application/json",
    ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
  };
  return async ({ method, url, body, ms, outlivesPage }) => {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), ms);
    const keepalive = outlivesPage && (body ?? "").length * 3 <= LARGEST_TO_OUTLIVE;
    const asked = { method, headers, signal: abort.signal, keepalive };
    try {
      const given = body === undefined ? asked : { ...asked, body };
      const response = await fetch(url, { ...given, redirect: "manual", cache: "no-store" });
      const retryAfter = response.headers.get("Retry-After") ?? "";
      return { status: response.status, body: await response.text(), retryAfter };
    } catch (error) {
      return {
        why: abort.signal.aborted ? `no answer within ${Math.round(ms)} ms` : reason(error),
      };
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Say why a request failed: Node has the reason one level down. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause.message : "";
  return cause === "" ? error.message : `${error.message}: ${cause}`;
}
