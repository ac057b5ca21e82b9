/** What the client sends and what it gets, beside the types of the service's own description. */

import type { Baseline, Reward, RewardAnswer, SelectAnswer, SelectRequest } from "./api.js";
import { InputError } from "./errors.js";

export type ArmId = string | number;

/** Numbers in their order, or values by their names, of any kind that JSON has. */
export type Context =
  readonly number[] | Float32Array | Float64Array | Readonly<Record<string, unknown>>;

/**
 * The arms chosen for one context, best first; `decision` is the id to reward.
 *
 * `isFallback` says that no answer came in time, so that the fallback was taken: the service
 * knows nothing of such a decision. All other fields are the service's, by its own names.
 */
export interface Selected extends SelectAnswer {
  /** The best of the arms. */
  readonly arm: ArmId;
  readonly isFallback: boolean;
}

/** A reward of a decision: its id, or what `select` gave. */
export interface RewardFor extends Omit<Reward, "decision"> {
  readonly decision: string | Selected;
}

export const SPOOLED = "spooled";
export const NOT_SENT = "not sent: fallback decision";
export const FALLBACK = "fallback:";

/** What became of a reward: what the service says, or that it did not get it. */
export type Became = RewardAnswer["status"] | typeof SPOOLED | typeof NOT_SENT;

const ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Return what is sent, as JSON. */
export function encode(body: unknown): string {
  try {
    return JSON.stringify(body, asList);
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new InputError(
      `A request needs numbers, texts, lists and objects: got a value that JSON has not ` +
        `(${(error as Error).message}). Turn it into one of these.`,
    );
  }
}

/** JSON would make objects of arrays of numbers, and nothing of maps and sets. */
function asList(_: string, value: unknown): unknown {
  if (ArrayBuffer.isView(value) && Symbol.iterator in value) return [...(value as Float64Array)];
  if (value instanceof Map || value instanceof Set) {
    throw new InputError(
      `A request needs numbers, texts, lists and objects: got a ${value.constructor.name}. Give ` +
        `Object.fromEntries(it), or [...it].`,
    );
  }
  return value;
}

/** Return an id for a new decision: 32 hexadecimal digits. */
export function newId(): string {
  const source = (globalThis as { crypto?: Partial<Crypto> }).crypto;
  if (source?.randomUUID !== undefined) return source.randomUUID().replaceAll("-", "");
  const bytes = new Uint8Array(16);
  // pages without https have no randomUUID, and Node 18 has no crypto at all: an id need not be
  // secret, only unlike all others
  if (source?.getRandomValues !== undefined) source.getRandomValues(bytes);
  else bytes.forEach((_, n) => (bytes[n] = Math.floor(256 * Math.random())));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Return an id that a caller chose, if a decision may have it. */
export function checkId(id: string): string {
  if (!ID.test(id) || id.startsWith(FALLBACK)) {
    throw new InputError(
      `The id of a decision needs 1 to 128 letters, digits and . _ : - and may not begin with ` +
        `"${FALLBACK}": got ${JSON.stringify(id)}. Choose another, or leave it to the client.`,
    );
  }
  return id;
}

/** Return ids for some contexts: those that were given, or new ones. */
export function checkIds(ids: readonly string[] | undefined, count: number): string[] {
  if (ids === undefined) return Array.from({ length: count }, newId);
  if (ids.length !== count) {
    throw new InputError(
      `Each context needs one id: got ${ids.length} ids for ${count} contexts. Leave them to the ` +
        `client, or give one for each.`,
    );
  }
  return ids.map(checkId);
}

/** Return what is known of the baseline; an arm alone says nothing of its propensity. */
export function toBaseline(given: Baseline | ArmId): Baseline {
  const baseline = typeof given === "object" ? given : { arm: given };
  const propensity = baseline.propensity ?? 1;
  if (!(propensity > 0 && propensity <= 1)) {
    throw new InputError(
      `A propensity needs to be above 0 and at most 1: got ${propensity} for the arm ` +
        `${JSON.stringify(baseline.arm)}. Leave it out where it is not known.`,
    );
  }
  return baseline;
}

/** Return a reward, if the service may take it: what is spooled must not be rejected later. */
export function checkReward(given: RewardFor): Reward {
  const { decision, value, arm, part } = given;
  const id = typeof decision === "object" ? decision.decision : decision;
  if (typeof id !== "string" || !ID.test(id)) {
    throw new InputError(
      `A reward needs the id of a decision, such as select() gives: got ${JSON.stringify(id)}. ` +
        `Give that id, or what select() gave.`,
    );
  }
  if (!Number.isFinite(value)) {
    throw new InputError(
      `A reward needs to be a finite number: got ${value} for the decision ${JSON.stringify(id)}. ` +
        `Leave it out, or say what it was worth.`,
    );
  }
  return { decision: id, value, ...(arm == null ? {} : { arm }), ...(part ? { part } : {}) };
}

/** Read the answers to a select of so many contexts. */
export function readSelected(answers: readonly SelectAnswer[], count: number): Selected[] {
  if (answers.length !== count)
    throw new Error(`${answers.length} decisions for ${count} contexts`);
  return answers.map((answer) => {
    const arm = answer.arms?.[0];
    if (arm === undefined) throw new Error("a decision without an arm");
    return { ...answer, arm, isFallback: false };
  });
}

/** Return a decision that the service knows nothing of. */
export function fallenBack(id: string, given: ArmId | readonly ArmId[]): Selected {
  const arms = typeof given === "object" ? [...given] : [given];
  const arm = arms[0];
  if (arm === undefined) {
    throw new InputError(`A fallback needs an arm or more: got none. Give one, or no fallback.`);
  }
  const scores = arms.map(() => 0);
  const rest = { version: 0, catalogue: 0, degraded: false, propensities: null };
  return { decision: FALLBACK + id, arm, arms, scores, ...rest, isFallback: true };
}

/** What both kinds of select may ask for, as the service's description has it. */
export type SelectTerms = Pick<
  SelectRequest,
  "k" | "eligible" | "arms" | "explore" | "propensity" | "columns" | "subject"
>;
