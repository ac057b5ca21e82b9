/** Rewards on their way: delivered, or spooled until they can be; never dropped. */

import type { Reward, RewardAnswers } from "./api.js";
import { ServiceError, ServiceUnavailable } from "./errors.js";
import type { Requester } from "./requester.js";
import { checkReward, encode, FALLBACK, NOT_SENT, SPOOLED } from "./shapes.js";
import type { Became, RewardFor } from "./shapes.js";
import type { Spool, Waiting } from "./spool.js";

const A_FEW = 100; // of the rewards that wait, with each call that the service answered
const MANY = 1_000;
const REJECTED_FOR_GOOD = [400, 413, 422]; // for what it says, not for who sent it or when

/** How many rewards of the spool were answered for, were rejected for good, and still wait. */
export interface Flushed {
  readonly sent: number;
  readonly rejected: number;
  readonly left: number;
}

/** How many rewards of the spool were answered for, rejected, and postponed as unknown. */
interface Went {
  readonly sent: number;
  readonly rejected: number;
  readonly unknown: number;
}

const NOTHING: Went = { sent: 0, rejected: 0, unknown: 0 };

/** Sends rewards by a requester; those that cannot be sent go to the spool, if there is one. */
export class Delivery {
  readonly #requester: Requester;
  readonly #spool: Spool | null;
  #underWay: Promise<Went> | null = null;

  constructor(requester: Requester, spool: Spool | null) {
    this.#requester = requester;
    this.#spool = spool;
  }

  /**
   * Deliver rewards, or spool them; return what became of each.
   *
   * A reward waits behind those of the same decision, so that the first stays the first.
   */
  async rewards(given: readonly RewardFor[]): Promise<Became[]> {
    const end = this.#requester.end();
    const all = given.map((one) => (isFallback(one) ? null : checkReward(one)));
    const own = all.filter((reward) => reward !== null);
    this.#requester.count("rewards not sent", all.length - own.length);
    const waiting = own.length === 0 ? null : this.#spool?.decisions();
    const isBehind = (reward: Reward): boolean => waiting?.has(reward.decision) ?? false;
    const direct = own.filter((reward) => !isBehind(reward));
    const statuses = await this.#deliver(direct, end);
    const found = this.#spoolUnknown(direct, statuses).values();
    this.#store(own.filter(isBehind));
    if (!statuses.includes(SPOOLED)) await this.#sendFew(end);
    return all.map((reward) => {
      if (reward === null) return NOT_SENT;
      return isBehind(reward) ? SPOOLED : (found.next().value as Became);
    });
  }

  /** Send what waits, until nothing is left, nothing more is taken or time is over. */
  async flush(timeoutMs: number | undefined): Promise<Flushed> {
    const end = this.#requester.end(timeoutMs);
    let [sent, rejected] = [0, 0];
    await this.#underWay;
    for (;;) {
      const went = await this.#sendWaiting(MANY, end, true);
      sent += went.sent;
      rejected += went.rejected;
      if (went.sent + went.rejected + went.unknown === 0) break;
    }
    return { sent, rejected, left: this.#spool?.spooled.waiting ?? 0 };
  }

  async #deliver(rewards: readonly Reward[], end: number): Promise<Became[]> {
    const statuses: Became[] = [];
    try {
      while (statuses.length < rewards.length) {
        const next = rewards.slice(statuses.length, statuses.length + MANY);
        statuses.push(...(await this.#send(next, end)));
      }
    } catch (error) {
      if (this.#spool === null || !(error instanceof ServiceUnavailable)) throw error;
    }
    const left = rewards.slice(statuses.length);
    this.#store(left);
    return [...statuses, ...left.map((): Became => SPOOLED)];
  }

  #store(rewards: readonly Reward[], areUnknown = false): void {
    if (this.#spool === null || rewards.length === 0) return;
    this.#spool.store(rewards, areUnknown);
    this.#requester.count("rewards spooled", rewards.length);
  }

  /** Spool rewards of decisions that another decider may hold, and not have logged yet. */
  #spoolUnknown(rewards: readonly Reward[], statuses: readonly Became[]): readonly Became[] {
    if (this.#spool === null || this.#spool.unknownMs <= 0) return statuses;
    const unknown = rewards.filter((_, n) => statuses[n] === "unknown");
    this.#store(unknown, true);
    return statuses.map((status) => (status === "unknown" ? SPOOLED : status));
  }

  async #send(rewards: readonly Reward[], end: number, tries?: number): Promise<Became[]> {
    const read = (answer: unknown): Became[] => {
      const answers = (answer as RewardAnswers).rewards;
      if (answers.length === rewards.length) return answers.map((one) => one.status);
      throw new Error(`${answers.length} answers for ${rewards.length} rewards`);
    };
    const body = encode({ rewards });
    const asked = { method: "POST", path: "/v1/reward", body } as const;
    return this.#requester.request({ ...asked, read, end, tries, outlivesPage: true });
  }

  // -- what waits

  /** Send a few of those that wait, unless that is under way already. */
  async #sendFew(end: number): Promise<void> {
    if (this.#underWay !== null) return;
    this.#underWay = this.#sendWaiting(A_FEW, end, false);
    try {
      await this.#underWay;
    } finally {
      this.#underWay = null;
    }
  }

  /**
   * Send the rewards that wait longest, once; return what became of them.
   *
   * What is not answered for stays. A service that takes no rewards at all (from a key without
   * that right) is an error only where it `isStrict`.
   */
  async #sendWaiting(count: number, end: number, isStrict: boolean): Promise<Went> {
    const waiting = this.#spool?.first(count) ?? [];
    if (this.#spool === null || waiting.length === 0) return NOTHING;
    try {
      const statuses = await this.#send(
        waiting.map(([, reward]) => reward),
        end,
        1,
      );
      return this.#removeAnswered(this.#spool, waiting, statuses);
    } catch (error) {
      if (isForGood(error)) return this.#sendOneByOne(this.#spool, waiting.slice(0, A_FEW), end);
      if (isStrict && !(error instanceof ServiceUnavailable)) throw error;
      return NOTHING;
    }
  }

  /** Find out which rewards the service rejects, and set those aside. */
  async #sendOneByOne(spool: Spool, waiting: readonly Waiting[], end: number): Promise<Went> {
    const answered: Waiting[] = [];
    const statuses: Became[] = [];
    let rejected = 0;
    for (const [name, reward] of waiting) {
      try {
        statuses.push(...(await this.#send([reward], end, 1)));
        answered.push([name, reward]);
      } catch (error) {
        if (!isForGood(error)) break;
        spool.reject(name, error.message);
        rejected += 1;
      }
    }
    this.#requester.count("rewards rejected", rejected);
    return { ...this.#removeAnswered(spool, answered, statuses), rejected };
  }

  /** Remove rewards that were answered for, but those that may be known later. */
  #removeAnswered(spool: Spool, waiting: readonly Waiting[], statuses: readonly Became[]): Went {
    const names = waiting.map(([name]) => name);
    const unknown = new Set(names.filter((_, n) => statuses[n] === "unknown"));
    const over = spool.postpone(unknown);
    const done = names.filter((name) => !unknown.has(name) || over.has(name));
    spool.remove(done);
    this.#requester.count("rewards sent from the spool", done.length);
    this.#requester.count("rewards unknown", over.size);
    return { sent: done.length, rejected: 0, unknown: names.length - done.length };
  }
}

function isFallback({ decision }: RewardFor): boolean {
  const id = typeof decision === "object" ? decision.decision : decision;
  return typeof id === "string" && id.startsWith(FALLBACK);
}

function isForGood(error: unknown): error is ServiceError {
  return error instanceof ServiceError && REJECTED_FOR_GOOD.includes(error.status);
}
