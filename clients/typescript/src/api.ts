/**
 * What is sent and answered, made from the description of the service by `npm run types`.
 *
 * Of the document with the SHA-256 52f4899770e550be175259e50f2e46ed07cfb00e7299c44df6a5ed7dc63603b6.
 */

export interface components {
    schemas: {
        /**
         * ArmUpsert
         * @description An arm to choose from now on, in place of any of the same id.
         *
         *         Its features are a list of numbers, or an object where the arms have names for them; none where
         *         arms are known by their ids alone.
         */
        readonly ArmUpsert: {
            /** @default null */
            readonly columns?: {
                readonly [key: string]: string | number | boolean | null;
            } | null;
            /** @default [] */
            readonly features?: readonly number[] | Record<string, unknown>;
            readonly id: string | number;
        };
        /**
         * Baseline
         * @description The arm that the caller's own policy takes, and how likely it was to take it.
         */
        readonly Baseline: {
            readonly arm: string | number;
            /** @default null */
            readonly propensity?: number | null;
        };
        /**
         * DiscardArmsAnswer
         * @description How many arms were removed; those that were not there are listed.
         */
        readonly DiscardArmsAnswer: {
            readonly arms: number;
            readonly catalogue: number;
            readonly removed: number;
            readonly unknown: readonly (string | number)[];
        };
        /**
         * DiscardArmsRequest
         * @description Arms never to choose again.
         */
        readonly DiscardArmsRequest: {
            readonly ids: readonly (string | number)[];
        };
        /**
         * ExplainedChange
         * @description Context features that, were they typical, would put the other of two arms ahead.
         *
         *         `difference` is then the score of the arm less that of the runner-up; it `moved` so far.
         */
        readonly ExplainedChange: {
            readonly difference: number;
            readonly features: readonly string[];
            readonly moved: number;
        };
        /**
         * ExplanationAnswer
         * @description What the score of an arm is made of, in units of reward; contributions sum to the score.
         *
         *         `version` is the one in service, which explains; `decided_by_version` the one that decided.
         *         `is_uniform` says that the decision took any eligible arm, by `select.epsilon`. `interval` holds
         *         the expected reward with a probability of 90 %. Each of `changes` would put the other of arm
         *         and runner-up ahead. An arm without a decision is explained for the typical context. Titles are
         *         there where the arms have a column for them.
         */
        readonly ExplanationAnswer: {
            readonly arm: string | number;
            readonly changes: readonly components["schemas"]["ExplainedChange"][];
            readonly contributions: {
                readonly [key: string]: number;
            };
            /** @default null */
            readonly decided_by_version?: number | null;
            /** @default null */
            readonly decision?: string | null;
            readonly draw: number;
            readonly expected: number;
            readonly interval: readonly number[] | null;
            /** @default false */
            readonly is_uniform?: boolean;
            readonly propensity: number | null;
            readonly runner_up: string | number | null;
            readonly runner_up_score: number | null;
            readonly runner_up_title?: string;
            readonly score: number;
            readonly title?: string;
            readonly version: number;
        };
        /**
         * OfferedArm
         * @description An arm that a request brings: with its features, or without if the catalogue has it.
         */
        readonly OfferedArm: {
            /** @default null */
            readonly features?: readonly number[] | Record<string, unknown> | null;
            readonly id: string | number;
        };
        /**
         * Problem
         * @description Why a request was rejected (RFC 9457): which field, what came, and what to do.
         */
        readonly Problem: {
            readonly detail: string;
            /** @default null */
            readonly field?: string | null;
            readonly fix: string;
            readonly status: number;
            readonly title: string;
            readonly type: string;
            /** @default null */
            readonly value?: string | null;
        };
        /**
         * Readiness
         * @description Whether the service can decide and remember now, and if not, why.
         *
         *         `rewards` says so where decisions are made, and rewards are rejected for now.
         */
        readonly Readiness: {
            readonly reasons: readonly components["schemas"]["Reason"][];
            /**
             * @default ready
             * @enum {unknown}
             */
            readonly rewards?: "not ready" | "ready";
            /** @enum {unknown} */
            readonly status: "not ready" | "ready";
        };
        /**
         * Reason
         * @description Why the service is not ready, or does less than it should.
         */
        readonly Reason: {
            readonly detail: string;
            readonly fix: string;
            readonly name: string;
        };
        /**
         * Reward
         * @description What came of a decision: of its first arm, unless another is named.
         *
         *         Where rewards add up, those that are meant to differ in `part`.
         */
        readonly Reward: {
            /** @default null */
            readonly arm?: string | number | null;
            /**
             * @description Letters, digits and . _ : - ; at most 128 of them.
             * @example 0c3f7a52d1e94b60
             */
            readonly decision: string;
            /** @default  */
            readonly part?: string;
            readonly value: number;
        };
        /**
         * RewardAnswer
         * @description What became of a reward; all are logged, only counted ones are learned from.
         */
        readonly RewardAnswer: {
            readonly decision: string;
            /** @enum {unknown} */
            readonly status: "conflicting" | "counted" | "duplicate" | "late" | "unknown" | "unknown arm";
        };
        /**
         * RewardAnswers
         * @description One answer for each reward, in their order.
         */
        readonly RewardAnswers: {
            readonly rewards: readonly components["schemas"]["RewardAnswer"][];
        };
        /**
         * RewardRequest
         * @description One reward, or many; or `outcomes` of a decision by name, each a reward of that part.
         *
         *         Where the service weighs outcomes, those that are known may come now and others later.
         */
        readonly RewardRequest: {
            /** @default null */
            readonly arm?: string | number | null;
            /**
             * @description Letters, digits and . _ : - ; at most 128 of them.
             * @example 0c3f7a52d1e94b60
             */
            readonly decision?: string;
            readonly outcomes?: {
                readonly [key: string]: number;
            };
            /** @default  */
            readonly part?: string;
            readonly rewards?: readonly components["schemas"]["Reward"][];
            readonly value?: number;
        };
        /**
         * SelectAnswer
         * @description The arms chosen for one context, best first.
         *
         *         `scores` are in units of reward. `version` counts the updates of the model, `catalogue` is
         *         the number of the last change of the arms. `degraded` says that the answer comes from
         *         less than the model that should serve; the status says why. In shadow mode `decided_by` says
         *         whose arms these are, and `other` is the arm that the other one would have taken. `dropped` is
         *         there where some eligible ids were not in the catalogue: how many. `columns` are those asked
         *         for, an object an arm as the catalogue has it now, null for an arm that is gone.
         */
        readonly SelectAnswer: {
            readonly arms: readonly (string | number)[];
            readonly catalogue: number;
            readonly columns?: readonly ({
                readonly [key: string]: string | number | boolean | null;
            } | null)[];
            /** @enum {unknown} */
            readonly decided_by?: "bandit" | "baseline";
            readonly decision: string;
            readonly degraded: boolean;
            readonly dropped?: number;
            readonly other?: string | number | null;
            /** @default null */
            readonly propensities?: readonly number[] | null;
            readonly scores: readonly number[];
            readonly version: number;
        };
        /**
         * SelectAnswers
         * @description One answer for each context, in their order.
         */
        readonly SelectAnswers: {
            readonly decisions: readonly components["schemas"]["SelectAnswer"][];
        };
        /**
         * SelectRequest
         * @description One context, or many: which arms for each?
         *
         *         A context is a list of numbers, or an object where the service has names for them: with a
         *         schema, of values of any kind, which are texts, numbers, booleans, lists or null. `k`
         *         arms are chosen for each, or all that are eligible where those are fewer. `eligible` is a
         *         list of ids, or a predicate on the arms' columns such as {"price": {"<=": 10}}. With
         *         `explore` off the arms are chosen by expected reward. An id of your own (`ids` for many)
         *         makes a retry safe: the same id gives the same answer. `propensity` asks how likely the
         *         chosen arm was. In shadow mode `baseline` (`baselines` for many) is the arm that your own
         *         policy takes. Eligible ids that are not in the catalogue are dropped; `strict` rejects them.
         *         `arms`, in place of `eligible`, are the ones to choose among, in the catalogue or not.
         *         `columns` names columns of the arms that the answer is to have beside them. `subject` is whom
         *         the decision is about: `fastbandit forget` removes all that is stored under it.
         */
        readonly SelectRequest: {
            /** @default null */
            readonly arms?: readonly components["schemas"]["OfferedArm"][] | null;
            /** @default null */
            readonly baseline?: components["schemas"]["Baseline"] | null;
            /** @default null */
            readonly baselines?: readonly components["schemas"]["Baseline"][] | null;
            /** @default [] */
            readonly columns?: readonly string[];
            readonly context?: readonly number[] | Record<string, unknown>;
            readonly contexts?: readonly (readonly number[] | Record<string, unknown>)[];
            /** @default null */
            readonly eligible?: readonly (string | number)[] | Record<string, unknown> | null;
            /** @default true */
            readonly explore?: boolean;
            /** @default null */
            readonly id?: string | null;
            /** @default null */
            readonly ids?: readonly string[] | null;
            /** @default 1 */
            readonly k?: number;
            /** @default false */
            readonly propensity?: boolean;
            /** @default false */
            readonly strict?: boolean;
            /** @default null */
            readonly subject?: string | null;
        };
        /**
         * Status
         * @description What serves now, why it is degraded if it is, and what the learner does.
         *
         *         `decides` is who decides; `baseline` is where the baseline's arm comes from, if anywhere.
         *         `checks` are those that the version passed; so many after it were `refused_in_a_row`.
         */
        readonly Status: {
            readonly arms: number;
            readonly arms_not_indexed: number;
            /** @default  */
            readonly baseline?: string;
            readonly catalogue: number;
            /** @default {} */
            readonly checks?: Record<string, unknown>;
            /**
             * @default bandit
             * @enum {unknown}
             */
            readonly decides?: "bandit" | "baseline";
            readonly events: number;
            readonly fastbandit: string;
            readonly learner: Record<string, unknown>;
            readonly problems: readonly components["schemas"]["Reason"][];
            readonly ready: boolean;
            readonly reasons: readonly components["schemas"]["Reason"][];
            /** @default 0 */
            readonly refused_in_a_row?: number;
            readonly rewards: {
                readonly [key: string]: number;
            };
            readonly serving: {
                readonly [key: string]: number | null;
            };
            readonly uptime_seconds: number;
            readonly version: number | null;
        };
        /**
         * UpsertArmsAnswer
         * @description How many arms are new, were changed, and were there just so.
         */
        readonly UpsertArmsAnswer: {
            readonly added: number;
            readonly arms: number;
            readonly catalogue: number;
            readonly changed: number;
            readonly unchanged: number;
        };
        /**
         * UpsertArmsRequest
         * @description Arms to add, or to change.
         */
        readonly UpsertArmsRequest: {
            readonly arms: readonly components["schemas"]["ArmUpsert"][];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;

export type ArmUpsert = components["schemas"]["ArmUpsert"];
export type Baseline = components["schemas"]["Baseline"];
export type DiscardArmsAnswer = components["schemas"]["DiscardArmsAnswer"];
export type DiscardArmsRequest = components["schemas"]["DiscardArmsRequest"];
export type ExplainedChange = components["schemas"]["ExplainedChange"];
export type ExplanationAnswer = components["schemas"]["ExplanationAnswer"];
export type OfferedArm = components["schemas"]["OfferedArm"];
export type Problem = components["schemas"]["Problem"];
export type Readiness = components["schemas"]["Readiness"];
export type Reason = components["schemas"]["Reason"];
export type Reward = components["schemas"]["Reward"];
export type RewardAnswer = components["schemas"]["RewardAnswer"];
export type RewardAnswers = components["schemas"]["RewardAnswers"];
export type RewardRequest = components["schemas"]["RewardRequest"];
export type SelectAnswer = components["schemas"]["SelectAnswer"];
export type SelectAnswers = components["schemas"]["SelectAnswers"];
export type SelectRequest = components["schemas"]["SelectRequest"];
export type Status = components["schemas"]["Status"];
export type UpsertArmsAnswer = components["schemas"]["UpsertArmsAnswer"];
export type UpsertArmsRequest = components["schemas"]["UpsertArmsRequest"];
