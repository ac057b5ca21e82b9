/** The deciders that a client may ask: in their order, but for those that failed a moment ago. */

import { SettingError } from "./errors.js";

const FIRST_REST_MS = 1_000;
const LONGEST_REST_MS = 30_000;

/** An address, how long it rests after the next failure, and until when it rests now. */
interface Decider {
  readonly url: string;
  restMs: number;
  until: number;
}

/**
 * Addresses of deciders that share a log: any may be asked, and knows the same decisions.
 *
 * One that fails rests for a second, twice as long after each further failure, or as long as it
 * asks for. While others are there it is not asked, unless they fail as well.
 */
export class Deciders {
  readonly #deciders: readonly Decider[];
  readonly #clock: () => number;

  constructor(urls: readonly string[], clock: () => number) {
    this.#deciders = urls.map((url) => ({ url, restMs: FIRST_REST_MS, until: 0 }));
    this.#clock = clock;
  }

  toString(): string {
    return this.#deciders.map((one) => one.url).join(", ");
  }

  /** Return all addresses, those that rest last. */
  order(): string[] {
    const now = this.#clock();
    const rank = (one: Decider): number => Number(one.until > now);
    return [...this.#deciders].sort((a, b) => rank(a) - rank(b)).map((one) => one.url);
  }

  /** Note that one answered. */
  noteWell(url: string): void {
    for (const one of this.#named(url)) Object.assign(one, { restMs: FIRST_REST_MS, until: 0 });
  }

  /** Note that one failed: it rests for so many milliseconds at least. */
  noteFailure(url: string, restMs: number): void {
    for (const one of this.#named(url)) {
      one.until = this.#clock() + Math.max(one.restMs, restMs);
      one.restMs = Math.min(2 * one.restMs, LONGEST_REST_MS);
    }
  }

  #named(url: string): Decider[] {
    return this.#deciders.filter((one) => one.url === url);
  }
}

/** Return the addresses of a service, each once, without the slash at their end. */
export function checkUrls(urls: string | readonly string[]): string[] {
  const named = typeof urls === "string" ? [urls] : urls;
  if (named.length === 0) throw wrongAddress("an empty list");
  return [...new Set(named.map(checkUrl))];
}

/** Return an address in full: on a page, one may begin with / and be of the page's own origin. */
function checkUrl(url: string): string {
  const page = typeof document === "undefined" ? undefined : document.baseURI;
  try {
    const parsed = new URL(url, url.startsWith("/") ? page : undefined);
    const isPlain = !(parsed.search || parsed.hash || parsed.username || parsed.password);
    if (isPlain && (parsed.protocol === "http:" || parsed.protocol === "https:")) {
      return (parsed.origin + parsed.pathname).replace(/\/+$/, "");
    }
  } catch {
    // it is no address
  }
  throw wrongAddress(JSON.stringify(url));
}

function wrongAddress(got: string): SettingError {
  return new SettingError(
    `A client needs the address of a service, such as http://127.0.0.1:8080: got ${got}. Give one ` +
      `that begins with http:// or https://, or on a page with / for its own origin, and has no query.`,
  );
}
