// The client talks to a service that runs: FASTBANDIT_URL says where, FASTBANDIT_KEY has all rights.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ServiceError, ServiceUnavailable } from "../dist/index.js";

const { FASTBANDIT_URL: url, FASTBANDIT_KEY: key } = process.env;
const skip =
  url === undefined && "no service: set FASTBANDIT_URL, or run the tests in tests/client";
const context = [0.5, -1.0, 2.0];
const NOBODY = "http://127.0.0.1:9";

const make = (options = {}) => new Client({ url, key, timeoutMs: 20_000, ...options });

/** Return a fetch that loses the first answers to a path, after the service has given them. */
function losing(count, path) {
  let left = count;
  return async (address, init) => {
    const response = await fetch(address, init);
    if (!address.endsWith(path) || left === 0) return response;
    left -= 1;
    await response.text();
    throw new TypeError("the connection was lost");
  };
}

test("it is ready, and says what it does", { skip }, async () => {
  assert.equal((await make().ready()).status, "ready");
  const status = await make().status();
  assert.ok(status.ready && status.arms >= 12);
});

test("the same id gives the same decision", { skip }, async () => {
  const [client, id] = [make(), "typescript-same"];
  const first = await client.select({ context, k: 2, id });

  assert.equal(first.arms.length, 2);
  assert.deepEqual(await client.select({ context, k: 2, id }), first);
});

test("a retry after a lost answer gives the decision that was made", { skip }, async () => {
  const made = [];
  const lost = losing(1, "/v1/select");
  const noting = async (address, init) => {
    made.push(JSON.parse(init.body).id);
    return lost(address, init);
  };
  const before = (await make().status()).events;
  const client = make({ fetch: noting });
  const selected = await client.select({ context });

  assert.equal(made.length, 2);
  assert.deepEqual(made, [selected.decision, selected.decision]);
  assert.equal(client.counts.retries, 1);
  assert.equal((await make().status()).events, before + 1);
  const again = await make().select({ context, id: selected.decision });
  assert.deepEqual(again.arms, selected.arms);
});

test(
  "many contexts, eligible arms, columns and propensities are understood",
  { skip },
  async () => {
    const terms = { eligible: ["arm-3"], columns: ["price", "colour"], propensity: true };
    const [one, two] = await make().selectMany({ contexts: [context, context], ...terms });

    assert.notEqual(one.decision, two.decision);
    assert.deepEqual([one.arm, two.arm], ["arm-3", "arm-3"]);
    assert.deepEqual(one.propensities, [1]);
    assert.deepEqual(one.columns, [{ price: 3, colour: "red" }]);
  },
);

test("a predicate on the columns says which arms are eligible", { skip }, async () => {
  const selected = await make().select({ context, k: 12, eligible: { price: { "<=": 1 } } });

  assert.deepEqual([...selected.arms].sort(), ["arm-0", "arm-1"]);
});

test("arms may come with the request", { skip }, async () => {
  const arms = [{ id: "arm-1" }, { id: "new", features: [1, 2, 3] }];
  const { arms: chosen } = await make().select({ context, k: 2, arms });

  assert.deepEqual([...chosen].sort(), ["arm-1", "new"]);
});

test("an array of numbers is a context", { skip }, async () => {
  assert.ok((await make().select({ context: new Float32Array(context) })).arm);
});

test("rewards are counted once", { skip }, async () => {
  const client = make({ spool: false });
  const selected = await client.select({ context, k: 2 });
  const second = selected.arms[1];

  assert.equal(await client.reward({ decision: selected, value: 1 }), "counted");
  const rest = [
    { decision: selected, value: 1 },
    { decision: selected.decision, value: 0 },
    { decision: selected, value: 1, arm: second },
    { decision: "typescript-nobody", value: 1 },
  ];
  const became = ["duplicate", "conflicting", "counted", "unknown"];
  assert.deepEqual(await client.rewards(rest), became);
});

test("a reward whose answer was lost is a duplicate, and counted once", { skip }, async () => {
  const client = make({ fetch: losing(1, "/v1/reward") });
  const selected = await client.select({ context });

  assert.equal(await client.reward({ decision: selected, value: 1 }), "duplicate");
});

test(
  "rewards that could not be delivered are delivered later, in their order",
  { skip },
  async () => {
    let isOut = false;
    const through = (address, init) =>
      isOut ? Promise.reject(new TypeError("offline")) : fetch(address, init);
    const client = make({ fetch: through, retries: { tries: 2, firstMs: 1 } });
    const made = await client.selectMany({ contexts: [context, context] });
    isOut = true;
    for (const decision of made)
      assert.equal(await client.reward({ decision, value: 1 }), "spooled");
    assert.equal(client.spooled.waiting, 2);
    isOut = false;

    assert.deepEqual(await client.flush(), { sent: 2, rejected: 0, left: 0 });
    const again = made.map((decision) => ({ decision, value: 1 }));
    assert.deepEqual(await client.rewards(again), ["duplicate", "duplicate"]);
  },
);

test("the next decider is asked where the first is out", { skip }, async () => {
  const client = make({ url: [NOBODY, url] });

  assert.ok((await client.select({ context })).arm);
  assert.equal(client.counts.retries, 1);
});

test("arms are added, changed and removed", { skip }, async () => {
  const client = make();
  const arm = {
    id: "typescript-arm",
    features: [1, 2, 3],
    columns: { price: 99, colour: "green" },
  };

  assert.equal((await client.upsertArms([arm])).added, 1);
  assert.equal((await client.upsertArms([arm])).unchanged, 1);
  const discarded = await client.discardArms(["typescript-arm", "typescript-nobody"]);
  assert.deepEqual([discarded.removed, discarded.unknown], [1, ["typescript-nobody"]]);
});

test("a decision is explained", { skip }, async () => {
  const client = make();
  const selected = await client.select({ context, k: 2 });
  const explanation = await client.explanation({ decision: selected, arm: selected.arms[1] });

  assert.equal(explanation.arm, selected.arms[1]);
  const parts = Object.values(explanation.contributions).reduce((sum, part) => sum + part, 0);
  assert.ok(Math.abs(parts - explanation.score) < 1e-4 * Math.max(1, Math.abs(explanation.score)));
});

test("a rejection has what was needed, what came and what to do", { skip }, async () => {
  await assert.rejects(make().select({ context, k: 0 }), (error) => {
    assert.ok(error instanceof ServiceError && !(error instanceof ServiceUnavailable));
    assert.deepEqual([error.status, error.field], [422, "k"]);
    assert.ok(error.title && error.detail && error.fix);
    assert.equal(error.message, `${error.detail} ${error.fix}`);
    return true;
  });
});

test("a strict client is told of arms that are not there", { skip }, async () => {
  const eligible = ["arm-1", "typescript-nobody"];

  assert.equal((await make().select({ context, eligible })).dropped, 1);
  await assert.rejects(make({ strict: true }).select({ context, eligible }), ServiceError);
});

test("without a key the service says that it needs one", { skip: skip || !key }, async () => {
  const asked = make({ key: undefined, fallback: "home" }).select({ context });

  await assert.rejects(asked, (error) => error.status === 401 && error.title === "no key");
});
