import assert from "node:assert/strict";
import { test } from "node:test";

import { SettingError } from "../dist/errors.js";
import { checkRetries, isWorthAnother, msUntil, pauseMs } from "../dist/retries.js";

const answer = (status) => ({ status, body: "", retryAfter: "" });

test("pauses grow with each try, up to the longest", () => {
  const retries = checkRetries({ firstMs: 20, mostMs: 100, random: () => 1 });

  assert.deepEqual(
    [0, 1, 2, 3, 4].map((tried) => pauseMs(retries, tried)),
    [20, 40, 80, 100, 100],
  );
});

test("a pause is drawn between zero and its longest", () => {
  assert.equal(pauseMs(checkRetries({ firstMs: 20, random: () => 0.25 }), 1), 10);
});

test("no answer, 408, 429 and 500 on are worth another try", () => {
  assert.ok(isWorthAnother({ why: "none came" }));
  for (const status of [408, 429, 500, 503]) assert.ok(isWorthAnother(answer(status)));
  for (const status of [0, 302, 400, 401, 403, 404, 409, 422]) {
    assert.ok(!isWorthAnother(answer(status)));
  }
});

test("Retry-After is read as seconds, as a date, or not at all", () => {
  const now = Date.parse("2026-01-31T00:00:00Z");

  assert.equal(msUntil("1.5"), 1_500);
  assert.equal(msUntil("Sat, 31 Jan 2026 00:00:07 GMT", now), 7_000);
  for (const none of ["", " ", "soon", "-3", "Sat, 31 Jan 2025 00:00:00 GMT"]) {
    assert.equal(msUntil(none, now), 0);
  }
});

for (const wrong of [
  { tries: 0 },
  { tries: 1.5 },
  { firstMs: -1 },
  { firstMs: 2, mostMs: 1 },
  { share: 0 },
]) {
  test(`retries of ${JSON.stringify(wrong)} are rejected`, () => {
    assert.throws(() => checkRetries(wrong), SettingError);
  });
}
