/** Rewards that could not be delivered yet, in a storage that may outlive the page. */

import type { Reward } from "./api.js";
import { SettingError, SpoolFull } from "./errors.js";
import { newId } from "./shapes.js";
import { findStorage, Values } from "./storage.js";
import type { SpoolStorage, Where } from "./storage.js";

/**
 * How a spool stores rewards.
 *
 * At most `limit` of them wait. A reward of a decision that is unknown waits for `unknownMs`:
 * another decider may hold it. `name` parts spools that share a storage; one for each service.
 */
export interface SpoolOptions {
  readonly storage?: SpoolStorage;
  readonly name?: string;
  readonly limit?: number;
  readonly unknownMs?: number;
}

/** What waits in the spool, and where; `why` says why that is memory, if it is. */
export interface Spooled {
  readonly waiting: number;
  readonly rejected: number;
  readonly where: Where;
  readonly why: string;
}

/** A reward that the service will never take, and why. */
export interface Rejected {
  readonly reward: Reward;
  readonly why: string;
}

/** A reward as it is stored. */
interface Entry {
  readonly reward: Reward;
  readonly refusal?: string;
  readonly unknownSince?: number;
  readonly due?: number;
}

export type Waiting = readonly [name: string, reward: Reward];

const FIRST_WAIT_MS = 1_000; // until a reward of a decision that is unknown is sent again

/** Stores rewards in their order; all that is stored stays until it is answered for. */
export class Spool {
  readonly unknownMs: number;
  readonly #limit: number;
  readonly #values: Values;
  readonly #clock: () => number;
  #last = 0;
  #stored = 0;

  constructor(options: SpoolOptions, service: string, clock: () => number = Date.now) {
    const { storage, name = service, limit = 10_000, unknownMs = 120_000 } = options;
    if (!(limit >= 1)) {
      throw new SettingError(
        `A spool needs room for one reward or more: got limit: ${limit}. Give spool: false for none.`,
      );
    }
    this.#limit = limit;
    this.unknownMs = unknownMs;
    this.#values = new Values(findStorage(storage), `fastbandit:${encodeURIComponent(name)}:`);
    this.#clock = clock;
  }

  /** What waits, and where. */
  get spooled(): Spooled {
    const entries = this.#entries().map(([, entry]) => entry);
    const rejected = entries.filter((entry) => entry.refusal !== undefined).length;
    const { where, why } = this.#values;
    return { waiting: entries.length - rejected, rejected, where, why };
  }

  /** Store rewards at the end, all or none. */
  store(rewards: readonly Reward[], areUnknown = false): void {
    const held = this.#values.names().length;
    if (held + rewards.length > this.#limit) {
      throw new SpoolFull(
        `The spool may hold ${this.#limit} rewards: it holds ${held}, and ${rewards.length} more ` +
          `came. They were not stored: see that the service answers, call flush(), or allow more ` +
          `with spool: { limit: … }.`,
      );
    }
    const now = this.#clock();
    const unknown = areUnknown ? { unknownSince: now, due: now + FIRST_WAIT_MS } : {};
    for (const reward of rewards) {
      this.#values.add(this.#nextEnd(now), JSON.stringify({ reward, ...unknown }));
    }
  }

  /** Return the rewards that have waited longest and may be sent now, with their names. */
  first(count: number): Waiting[] {
    const now = this.#clock();
    const waiting = this.#waiting();
    const later = new Set(
      waiting.filter(([, { due = 0 }]) => due > now).map(([, { reward }]) => reward.decision),
    );
    const ready = waiting.filter(([, { reward }]) => !later.has(reward.decision));
    return ready.slice(0, count).map(([name, { reward }]) => [name, reward]);
  }

  /** Return the decisions for which a reward waits. */
  decisions(): Set<string> {
    return new Set(this.#waiting().map(([, { reward }]) => reward.decision));
  }

  /** Forget rewards that were answered for. */
  remove(names: Iterable<string>): void {
    for (const name of names) this.#values.remove(name);
  }

  /**
   * Let rewards of unknown decisions wait; return those that have waited enough.
   *
   * Each waits as long again as it did, so that it is sent a few times in all.
   */
  postpone(names: Iterable<string>): Set<string> {
    const now = this.#clock();
    const over = new Set<string>();
    for (const name of names) {
      const entry = this.#read(name);
      const since = entry?.unknownSince ?? now;
      if (entry === null || now - since >= this.unknownMs) over.add(name);
      else {
        const due = now + Math.max(FIRST_WAIT_MS, now - since);
        this.#values.set(name, JSON.stringify({ ...entry, unknownSince: since, due }));
      }
    }
    return over;
  }

  /** Set a reward aside that the service will never take. */
  reject(name: string, why: string): void {
    const entry = this.#read(name);
    if (entry !== null) this.#values.set(name, JSON.stringify({ ...entry, refusal: why }));
  }

  /** Return the rewards that were rejected, each with the reason, and forget them. */
  takeRejected(): Rejected[] {
    const found = this.#entries().filter(([, entry]) => entry.refusal !== undefined);
    this.remove(found.map(([name]) => name));
    return found.map(([, { reward, refusal = "" }]) => ({ reward, why: refusal }));
  }

  // -- entries

  #waiting(): [string, Entry][] {
    return this.#entries().filter(([, entry]) => entry.refusal === undefined);
  }

  #entries(): [string, Entry][] {
    return this.#values.names().flatMap((name): [string, Entry][] => {
      const entry = this.#read(name);
      return entry === null ? [] : [[name, entry]];
    });
  }

  /** Return what is stored by a name; null for what others put there. */
  #read(name: string): Entry | null {
    try {
      const found = JSON.parse(this.#values.get(name) ?? "null") as Entry | null;
      return typeof found?.reward?.decision === "string" ? found : null;
    } catch {
      return null;
    }
  }

  /** Return the end of the next name: by the time, or after the last should clocks go back. */
  #nextEnd(now: number): string {
    this.#last = Math.max(this.#last, now);
    this.#stored += 1;
    const time = Math.floor(this.#last).toString(36).padStart(10, "0");
    return `${time}-${this.#stored.toString(36).padStart(8, "0")}-${newId()}`;
  }
}
