/** A client of the fastbandit decision service: deadlines, safe retries, a fallback and a spool. */

export { Client } from "./client.js";
export type {
  ClientOptions,
  Fallback,
  SelectManyOptions,
  SelectOptions,
  Within,
} from "./client.js";
export type { Flushed } from "./delivery.js";
export {
  FastbanditError,
  InputError,
  ServiceError,
  ServiceUnavailable,
  SettingError,
  SpoolFull,
} from "./errors.js";
export type { Retries } from "./retries.js";
export { NOT_SENT, SPOOLED } from "./shapes.js";
export type { ArmId, Became, Context, RewardFor, Selected } from "./shapes.js";
export type { Rejected, Spooled, SpoolOptions } from "./spool.js";
export type { SpoolStorage } from "./storage.js";
export type * from "./api.js";
