import assert from "node:assert/strict";
import { test } from "node:test";

import { InputError } from "../dist/errors.js";
import {
  checkId,
  checkIds,
  checkReward,
  encode,
  fallenBack,
  newId,
  readSelected,
  toBaseline,
} from "../dist/shapes.js";

test("arrays of numbers are sent as lists, and dates as texts", () => {
  const day = new Date(Date.UTC(2026, 0, 31));

  assert.equal(
    encode({ a: new Float32Array([0.5, 1]), day }),
    '{"a":[0.5,1],"day":"2026-01-31T00:00:00.000Z"}',
  );
});

for (const [kind, value] of [
  ["Map", new Map()],
  ["Set", new Set()],
  ["BigInt", 1n],
]) {
  test(`a ${kind} cannot be sent`, () => {
    assert.throws(
      () => encode({ value }),
      new RegExp(`InputError: A request needs numbers.*${kind}`),
    );
  });
}

/** Do something with another source of random numbers, or none. */
function withCrypto(value, work) {
  const before = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value, configurable: true });
  try {
    return work();
  } finally {
    if (before === undefined) delete globalThis.crypto;
    else Object.defineProperty(globalThis, "crypto", before);
  }
}

const getRandomValues = (bytes) => bytes.fill(10);
for (const [source, crypto] of [
  ["what is there", globalThis.crypto],
  ["getRandomValues, as on a page without https", { getRandomValues }],
  ["nothing at all, as in Node 18", undefined],
]) {
  test(`a new id is made with ${source}`, () => {
    assert.match(withCrypto(crypto, newId), /^[0-9a-f]{32}$/);
  });
}

test("new ids differ, whatever they are made of", () => {
  for (const crypto of [globalThis.crypto, undefined]) {
    const ids = withCrypto(crypto, () => Array.from({ length: 1_000 }, newId));
    assert.equal(new Set(ids).size, 1_000);
  }
});

for (const wrong of ["", "a b", "é", "x".repeat(129), "fallback:a"]) {
  test(`${JSON.stringify(wrong.slice(0, 20))} is no id of a decision`, () => {
    assert.throws(() => checkId(wrong), InputError);
  });
}

test("each context needs an id", () => {
  assert.deepEqual(checkIds(["a", "b"], 2), ["a", "b"]);
  assert.throws(() => checkIds(["a"], 2), /got 1 ids for 2 contexts/);
});

test("a baseline is an arm, or an arm and its propensity", () => {
  assert.deepEqual(toBaseline("a"), { arm: "a" });
  assert.deepEqual(toBaseline({ arm: 3, propensity: 0.5 }), { arm: 3, propensity: 0.5 });
  for (const propensity of [0, 1.5, NaN]) {
    assert.throws(() => toBaseline({ arm: 3, propensity }), InputError);
  }
});

test("a reward is of an id, or of what select gave", () => {
  assert.deepEqual(checkReward({ decision: "a", value: 1 }), { decision: "a", value: 1 });
  const given = { decision: { decision: "a" }, value: 0, arm: 0, part: "p" };
  assert.deepEqual(checkReward(given), { decision: "a", value: 0, arm: 0, part: "p" });
});

for (const wrong of [
  { decision: "a b", value: 1 },
  { value: 1 },
  { decision: "a", value: NaN },
  { decision: "a" },
]) {
  test(`a reward of ${JSON.stringify(wrong)} is rejected before it is spooled`, () => {
    assert.throws(() => checkReward(wrong), InputError);
  });
}

test("answers need one decision a context, with an arm each", () => {
  const [one] = readSelected([{ decision: "a", arms: [4, 5], scores: [1, 0] }], 1);

  assert.deepEqual([one.arm, one.isFallback], [4, false]);
  assert.throws(() => readSelected([], 1), /0 decisions for 1 contexts/);
  assert.throws(() => readSelected([{ arms: [] }], 1), /without an arm/);
  assert.throws(() => readSelected([{}], 1), /without an arm/);
});

test("a fallback has an id that the service never sees", () => {
  const { decision, arm, arms, isFallback } = fallenBack("a", ["x", "y"]);

  assert.deepEqual([decision, arm, arms, isFallback], ["fallback:a", "x", ["x", "y"], true]);
  assert.throws(() => fallenBack("a", []), InputError);
});
