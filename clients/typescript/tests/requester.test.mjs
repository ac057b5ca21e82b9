import assert from "node:assert/strict";
import { test } from "node:test";

import { ServiceError, ServiceUnavailable, SettingError } from "../dist/errors.js";
import { Requester } from "../dist/requester.js";
import { checkRetries } from "../dist/retries.js";
import { handClock, problem } from "./fakes.mjs";

const NOT_NOW = { status: 503, body: JSON.stringify(problem(503, "Not now.")), retryAfter: "" };
const ASKED = { method: "GET", path: "/x", read: (answer) => answer };

/** Return a requester that gets these outcomes in turn, and what it sent. */
function requesterOf(outcomes, { urls = ["http://a"], timeoutMs = 1_000, takesMs = 0 } = {}) {
  const clock = handClock();
  const sent = [];
  const send = async (one) => {
    sent.push(one);
    clock.now += takesMs;
    return outcomes.shift() ?? { why: "nobody is there" };
  };
  const retries = checkRetries({ random: () => 0.5 });
  const parts = { urls, send, timeoutMs, retries, clock: clock.read, sleep: clock.sleep };
  return { requester: new Requester(parts), sent, clock };
}

const ok = (value) => ({ status: 200, body: JSON.stringify(value), retryAfter: "" });

test("an answer is given back", async () => {
  assert.deepEqual(await requesterOf([ok({ a: 1 })]).requester.request(ASKED), { a: 1 });
});

test("the same request is sent again after a failure, with a pause", async () => {
  const { requester, sent, clock } = requesterOf([{ why: "lost" }, NOT_NOW, ok(1)]);

  assert.equal(await requester.request({ ...ASKED, body: "{}" }), 1);
  assert.deepEqual(
    sent.map(({ body }) => body),
    ["{}", "{}", "{}"],
  );
  assert.deepEqual(clock.slept, [10, 20]);
  assert.equal(requester.counts.retries, 2);
});

test("an answer that cannot be read is asked for again", async () => {
  const { requester, sent } = requesterOf([{ ...ok(1), body: "<html>" }, ok(1)]);

  assert.equal(await requester.request(ASKED), 1);
  assert.equal(sent.length, 2);
});

test("a pause is never shorter than Retry-After asks for", async () => {
  const { requester, clock } = requesterOf([{ ...NOT_NOW, retryAfter: "0.3" }, ok(1)]);

  await requester.request(ASKED);
  assert.deepEqual(clock.slept, [310]);
});

test("it gives up at once where Retry-After lies behind the deadline", async () => {
  const { requester, sent } = requesterOf([{ ...NOT_NOW, retryAfter: "60" }, ok(1)]);

  await assert.rejects(requester.request(ASKED), ServiceUnavailable);
  assert.equal(sent.length, 1);
});

test("a try takes half of the time that is left, the last all of it", async () => {
  const { requester, sent } = requesterOf([], { takesMs: 100 });

  await assert.rejects(requester.request(ASKED), ServiceUnavailable);
  assert.deepEqual(
    sent.map(({ ms }) => ms),
    [500, 445, 385, 630],
  );
});

test("no try begins after the deadline", async () => {
  const { requester, sent } = requesterOf([], { takesMs: 600 });

  await assert.rejects(requester.request(ASKED), /nobody is there/);
  assert.equal(sent.length, 2);
});

test("a rejection is thrown at once, with what the service said", async () => {
  const body = JSON.stringify({ ...problem(422, "It needs k."), field: "k", value: "0" });
  const { requester, sent } = requesterOf([{ status: 422, body, retryAfter: "" }]);

  await assert.rejects(requester.request(ASKED), (error) => {
    assert.ok(error instanceof ServiceError && !(error instanceof ServiceUnavailable));
    assert.equal(error.message, "It needs k. Send another.");
    const { status, title, detail, field, value, fix } = error;
    assert.deepEqual([status, title, field, value], [422, "Rejected", "k", "0"]);
    assert.deepEqual([detail, fix], ["It needs k.", "Send another."]);
    return true;
  });
  assert.equal(sent.length, 1);
});

test("what is no service is named as such", async () => {
  const { requester } = requesterOf([{ status: 404, body: "nope", retryAfter: "" }]);

  await assert.rejects(requester.request(ASKED), /answered 404.* Check that http:\/\/a is/);
});

test("the next decider is asked without a pause, and the failed one rests", async () => {
  const urls = ["http://a", "http://b"];
  const { requester, sent, clock } = requesterOf([NOT_NOW, ok(1), ok(2)], { urls });

  await requester.request(ASKED);
  await requester.request(ASKED);
  assert.deepEqual(
    sent.map(({ url }) => url),
    ["http://a/x", "http://b/x", "http://b/x"],
  );
  assert.deepEqual(clock.slept, []);
});

for (const timeoutMs of [0, -1, NaN, Infinity]) {
  test(`a time of ${timeoutMs} ms is no setting`, () => {
    assert.throws(() => requesterOf([], { timeoutMs }), SettingError);
    assert.throws(() => requesterOf([]).requester.end(timeoutMs), SettingError);
  });
}
