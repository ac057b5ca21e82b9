/** The client: what it asks the service in each of its calls. */

import type {
  ArmUpsert,
  Baseline,
  DiscardArmsAnswer,
  ExplanationAnswer,
  Readiness,
  SelectAnswer,
  SelectAnswers,
  Status,
  UpsertArmsAnswer,
} from "./api.js";
import { checkUrls } from "./deciders.js";
import { Delivery } from "./delivery.js";
import type { Flushed } from "./delivery.js";
import { ServiceUnavailable } from "./errors.js";
import { Requester } from "./requester.js";
import type { Request } from "./requester.js";
import { checkRetries } from "./retries.js";
import type { Retries } from "./retries.js";
import {
  checkId,
  checkIds,
  encode,
  fallenBack,
  newId,
  readSelected,
  toBaseline,
} from "./shapes.js";
import type { ArmId, Became, Context, RewardFor, Selected, SelectTerms } from "./shapes.js";
import { Spool } from "./spool.js";
import type { Rejected, Spooled, SpoolOptions } from "./spool.js";
import type { SpoolStorage } from "./storage.js";
import { sendBy } from "./transport.js";
import type { Fetch } from "./transport.js";

/** An arm, arms, or a function that returns them for a context. */
export type Fallback = ArmId | readonly ArmId[] | ((context: Context) => ArmId | readonly ArmId[]);

/** Whom a client asks, and what it does where no answer comes. */
export interface ClientOptions {
  /** The address of the service, or those of several deciders that share a log. */
  readonly url: string | readonly string[];
  readonly key?: string | undefined;
  /** After so many milliseconds a call ends, retries included. */
  readonly timeoutMs?: number;
  readonly retries?: Retries;
  readonly fallback?: Fallback;
  /** Where rewards wait that cannot be delivered; `false` for nowhere. */
  readonly spool?: false | SpoolStorage | SpoolOptions;
  /** Whether eligible ids that are not in the catalogue are an error. */
  readonly strict?: boolean;
  /** What sends requests, in place of the fetch that every browser and Node has. */
  readonly fetch?: Fetch;
}

/** What a select asks for. */
export interface SelectOptions extends SelectTerms {
  readonly context: Context;
  readonly id?: string;
  readonly baseline?: Baseline | ArmId;
  readonly fallback?: Fallback;
}

/** What a select for several contexts asks for. */
export interface SelectManyOptions extends SelectTerms {
  readonly contexts: readonly Context[];
  readonly ids?: readonly string[];
  readonly baselines?: readonly (Baseline | ArmId)[];
  readonly fallback?: Fallback;
}

/** How long one call may take, in place of the client's own time. */
export interface Within {
  readonly timeoutMs?: number;
}

/**
 * Asks the decision service, each call within `timeoutMs`, retries included.
 *
 * Retries are safe: the client chooses the id of a decision before it first asks, and the same id
 * gives the same answer. With several addresses the next is asked where one fails. Where no answer
 * comes in time, `select` takes the `fallback`, or throws ServiceUnavailable; rewards go to the
 * `spool`, and are sent once the service answers again. What the service rejects throws a
 * ServiceError.
 */
export class Client {
  readonly #requester: Requester;
  readonly #delivery: Delivery;
  readonly #spool: Spool | null;
  readonly #fallback: Fallback | undefined;
  readonly #isStrict: boolean;
  readonly #online = (): void => {
    // what cannot be sent yet stays in the spool, and nobody is here to hear why
    this.flush().catch(() => undefined);
  };

  constructor(options: ClientOptions) {
    const urls = checkUrls(options.url);
    const { key, timeoutMs = 500, fallback, strict = false } = options;
    const send = sendBy(options.fetch ?? ((url, init) => fetch(url, init)), key);
    const retries = checkRetries(options.retries);
    this.#requester = new Requester({ urls, send, timeoutMs, retries });
    this.#spool = spoolFor(options.spool, urls[0] ?? "");
    this.#delivery = new Delivery(this.#requester, this.#spool);
    this.#fallback = fallback;
    this.#isStrict = strict;
    if (this.#spool !== null && typeof window !== "undefined") {
      window.addEventListener("online", this.#online);
    }
  }

  /** How many retries, fallbacks, and rewards spooled, sent later, rejected or not sent. */
  get counts(): Readonly<Record<string, number>> {
    return { ...this.#requester.counts };
  }

  /** How many rewards wait, and where; null without a spool. */
  get spooled(): Spooled | null {
    return this.#spool?.spooled ?? null;
  }

  /** Return the rewards that the service will never take, with the reasons, and forget them. */
  takeRejected(): Rejected[] {
    return this.#spool?.takeRejected() ?? [];
  }

  /** Choose `k` arms for a context, or all that are eligible where those are fewer. */
  async select(options: SelectOptions): Promise<Selected> {
    const { context, id: own, baseline, fallback, ...terms } = options;
    const id = own === undefined ? newId() : checkId(own);
    const alone = baseline === undefined ? {} : { baseline: toBaseline(baseline) };
    const body = encode({ context, id, ...alone, ...this.#terms(terms) });
    const read = (answer: unknown): Selected[] => readSelected([answer as SelectAnswer], 1);
    const [selected] = await this.#select(body, read, [context], [id], fallback);
    return selected as Selected;
  }

  /** Choose arms for each of some contexts, in one request. */
  async selectMany(options: SelectManyOptions): Promise<Selected[]> {
    const { contexts, ids: own, baselines, fallback, ...terms } = options;
    const ids = checkIds(own, contexts.length);
    if (contexts.length === 0) return [];
    const each = baselines === undefined ? {} : { baselines: baselines.map(toBaseline) };
    const body = encode({ contexts, ids, ...each, ...this.#terms(terms) });
    const read = (answer: unknown): Selected[] =>
      readSelected((answer as SelectAnswers).decisions, contexts.length);
    return this.#select(body, read, contexts, ids, fallback);
  }

  /** Deliver the reward of a decision; return what became of it. */
  async reward(reward: RewardFor): Promise<Became> {
    const [became] = await this.rewards([reward]);
    return became as Became;
  }

  /** Deliver rewards, up to 1,000 in a request; return what became of each. */
  rewards(rewards: readonly RewardFor[]): Promise<Became[]> {
    return this.#delivery.rewards(rewards);
  }

  /** Send the rewards that wait in the spool, until none is left or the time is over. */
  flush({ timeoutMs }: Within = {}): Promise<Flushed> {
    return this.#delivery.flush(timeoutMs);
  }

  /** Add arms, or change those of the same ids. */
  async upsertArms(arms: readonly ArmUpsert[], within: Within = {}): Promise<UpsertArmsAnswer> {
    return this.#ask({ method: "PUT", path: "/v1/arms", body: encode({ arms }) }, within);
  }

  /** Remove arms: none of them is chosen again. */
  async discardArms(ids: readonly ArmId[], within: Within = {}): Promise<DiscardArmsAnswer> {
    return this.#ask({ method: "DELETE", path: "/v1/arms", body: encode({ ids }) }, within);
  }

  /** Ask why a decision took its first arm, or another of its arms (needs the scope admin). */
  async explanation({
    decision,
    arm,
    ...within
  }: { decision: string | Selected; arm?: ArmId } & Within): Promise<ExplanationAnswer> {
    const id = typeof decision === "object" ? decision.decision : decision;
    const query = arm === undefined ? "" : `?arm=${encodeURIComponent(arm)}`;
    const path = `/v1/decisions/${encodeURIComponent(id)}/explanation${query}`;
    return this.#ask({ method: "GET", path }, within);
  }

  /** Ask what the service is doing. */
  async status(within: Within = {}): Promise<Status> {
    return this.#ask({ method: "GET", path: "/v1/status" }, within);
  }

  /** Ask whether the service can decide and remember now, once; throw where it does not answer. */
  async ready(within: Within = {}): Promise<Readiness> {
    try {
      return await this.#ask({ method: "GET", path: "/ready", tries: 1 }, within);
    } catch (error) {
      const said = error instanceof ServiceUnavailable ? error.problem : {};
      if ("reasons" in said) return said as unknown as Readiness;
      throw error;
    }
  }

  /** No longer send what waits when the browser is online again; what waits stays. */
  close(): void {
    if (typeof window !== "undefined") window.removeEventListener("online", this.#online);
  }

  // -- how a call is made

  #terms(terms: SelectTerms): SelectTerms & { strict?: true } {
    return this.#isStrict ? { ...terms, strict: true } : terms;
  }

  /** Ask the service, or choose by the fallback where no answer comes. */
  async #select(
    body: string,
    read: (answer: unknown) => Selected[],
    contexts: readonly Context[],
    ids: readonly string[],
    given: Fallback | undefined,
  ): Promise<Selected[]> {
    const fallback = given ?? this.#fallback;
    try {
      return await this.#requester.request({ method: "POST", path: "/v1/select", body, read });
    } catch (error) {
      if (fallback === undefined || !(error instanceof ServiceUnavailable)) throw error;
    }
    this.#requester.count("fallbacks", ids.length);
    return contexts.map((context, n) => {
      const arms = typeof fallback === "function" ? fallback(context) : fallback;
      return fallenBack(ids[n] as string, arms);
    });
  }

  #ask<T>(request: Omit<Request<T>, "read" | "end">, { timeoutMs }: Within): Promise<T> {
    const end = this.#requester.end(timeoutMs);
    return this.#requester.request({ ...request, end, read: (answer) => answer as T });
  }
}

function spoolFor(given: ClientOptions["spool"], service: string): Spool | null {
  if (given === false) return null;
  if (typeof given !== "object") return new Spool({}, service);
  return new Spool("getItem" in given ? { storage: given } : given, service);
}
