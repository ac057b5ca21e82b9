/** The tree of errors: each message says what was needed, what came, and what to do. */

import type { Problem } from "./api.js";

/** All that the client throws. */
export class FastbanditError extends Error {
  override readonly name: string = "FastbanditError";
}

/** A setting of the client that cannot be used. */
export class SettingError extends FastbanditError {
  override readonly name: string = "SettingError";
}

/** An argument that the service would reject. */
export class InputError extends FastbanditError {
  override readonly name: string = "InputError";
}

/**
 * A request that the service rejected.
 *
 * `status` is that of HTTP, 0 where no answer came. `problem` is what the service said of it
 * (RFC 9457); its fields are there by their names as well.
 */
export class ServiceError extends FastbanditError {
  override readonly name: string = "ServiceError";
  readonly status: number;
  readonly problem: Partial<Problem>;

  constructor(message: string, status = 0, problem: Partial<Problem> = {}) {
    super(message);
    this.status = status;
    this.problem = problem;
  }

  /** What kind of problem it is, in two words. */
  get title(): string {
    return this.problem.title ?? "";
  }

  /** What was needed, and what came. */
  get detail(): string {
    return this.problem.detail ?? "";
  }

  /** Which field of the request is meant, if it is one. */
  get field(): string | null {
    return this.problem.field ?? null;
  }

  /** What that field held. */
  get value(): string | null {
    return this.problem.value ?? null;
  }

  /** What to do. */
  get fix(): string {
    return this.problem.fix ?? "";
  }
}

/** No answer of the service in time. */
export class ServiceUnavailable extends ServiceError {
  override readonly name: string = "ServiceUnavailable";
}

/** More rewards wait than the spool may hold. */
export class SpoolFull extends FastbanditError {
  override readonly name: string = "SpoolFull";
}
