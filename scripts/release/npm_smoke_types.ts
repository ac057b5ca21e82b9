// Compiled, not run: the types of an installed package are found, and are strict.

import { Client, ServiceUnavailable } from "fastbandit";
import type { Became, Selected, Status } from "fastbandit";

const client = new Client({ url: ["http://127.0.0.1:8080"], spool: false, retries: { tries: 1 } });

export async function use(): Promise<[Selected, Became, Status] | string> {
  try {
    const selected = await client.select({ context: { age: 3 }, k: 2, eligible: ["a", 2] });
    const became = await client.reward({ decision: selected, value: 1, arm: selected.arms[1] });
    // @ts-expect-error: a reward has a value
    await client.reward({ decision: selected });
    // @ts-expect-error: a select has no such field
    await client.select({ context: [1], kk: 2 });
    return [selected, became, await client.status()];
  } catch (error) {
    return error instanceof ServiceUnavailable ? error.fix : "";
  }
}
