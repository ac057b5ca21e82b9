import assert from "node:assert/strict";
import { test } from "node:test";

import { Delivery } from "../dist/delivery.js";
import { ServiceError, ServiceUnavailable } from "../dist/errors.js";
import { Requester } from "../dist/requester.js";
import { checkRetries } from "../dist/retries.js";
import { Spool } from "../dist/spool.js";
import { sendBy } from "../dist/transport.js";
import { drop, FakeService, FakeStorage, handClock, reject } from "./fakes.mjs";

const OUT = [drop, drop, drop, drop]; // for as many tries as a call has

/** Return a delivery to a service that knows the decisions a, b and c. */
function make(options = {}) {
  const [service, storage, clock] = [new FakeService(), new FakeStorage(), handClock()];
  for (const id of ["a", "b", "c"]) service.decide(id, {});
  const parts = {
    send: sendBy(service.fetch, undefined),
    retries: checkRetries(),
    clock: clock.read,
  };
  const requester = new Requester({
    ...parts,
    urls: ["http://x"],
    timeoutMs: 900,
    sleep: clock.sleep,
  });
  const spool = options === null ? null : new Spool({ storage, ...options }, "x", clock.read);
  return { service, clock, spool, requester, delivery: new Delivery(requester, spool) };
}

const reward = (decision, value = 1) => ({ decision, value });

test("what the service says of each reward is given back", async () => {
  const { delivery } = make();

  assert.deepEqual(await delivery.rewards([reward("a"), reward("a"), reward("a", 0)]), [
    "counted",
    "duplicate",
    "conflicting",
  ]);
});

test("a reward that cannot be delivered is spooled, and sent with the next", async () => {
  const { delivery, service, spool, requester } = make();
  service.failures = [...OUT];

  assert.deepEqual(await delivery.rewards([reward("a")]), ["spooled"]);
  assert.equal(spool.spooled.waiting, 1);
  assert.deepEqual(await delivery.rewards([reward("b")]), ["counted"]);
  assert.deepEqual([...service.counted.keys()], ["b", "a"]);
  assert.equal(spool.spooled.waiting, 0);
  assert.equal(requester.counts["rewards spooled"], 1);
  assert.equal(requester.counts["rewards sent from the spool"], 1);
});

test("rewards of the spool are sent in their order", async () => {
  const { delivery, service } = make();
  service.failures = [...OUT, ...OUT, ...OUT];
  for (const id of ["c", "a", "b"]) await delivery.rewards([reward(id)]);

  assert.deepEqual(await delivery.flush(), { sent: 3, rejected: 0, left: 0 });
  assert.deepEqual([...service.counted.keys()], ["c", "a", "b"]);
});

test("a reward waits behind one of the same decision, and the first stays the first", async () => {
  const { delivery, service } = make();
  service.failures = [...OUT];
  await delivery.rewards([reward("a", 0)]);

  assert.deepEqual(await delivery.rewards([reward("a", 1), reward("b")]), ["spooled", "counted"]);
  assert.equal(service.counted.get("a"), 0);
});

test("what is sent twice is counted once", async () => {
  const { delivery, service } = make();
  service.failures = [
    (answer) => {
      answer();
      return drop();
    },
    ...OUT.slice(1),
  ];

  assert.deepEqual(await delivery.rewards([reward("a")]), ["spooled"]);
  assert.deepEqual(await delivery.flush(), { sent: 1, rejected: 0, left: 0 });
  assert.deepEqual([...service.counted], [["a", 1]]);
});

test("while the service is out all stays in the spool", async () => {
  const { delivery, service } = make();
  service.failures = [...OUT, ...OUT];
  await delivery.rewards([reward("a")]);

  assert.deepEqual(await delivery.flush(), { sent: 0, rejected: 0, left: 1 });
});

test("without a spool a reward that cannot be delivered is an error", async () => {
  const { delivery, service } = make(null);
  service.failures = [...OUT];

  await assert.rejects(delivery.rewards([reward("a")]), ServiceUnavailable);
});

test("one that the service rejects is set aside, and the others are sent", async () => {
  const { delivery, service, spool } = make();
  service.failures = [...OUT];
  await delivery.rewards([reward("a"), reward("b", 7), reward("c")]);

  assert.deepEqual(await delivery.flush(), { sent: 2, rejected: 1, left: 0 });
  assert.deepEqual([...service.counted.keys()], ["a", "c"]);
  const [{ reward: aside, why }] = spool.takeRejected();
  assert.deepEqual([aside, why], [reward("b", 7), "It needs to be 0 or 1. Send another."]);
});

test("a key without the right is told so by flush, and the rewards stay", async () => {
  const { delivery, service, spool } = make();
  service.failures = [...OUT, reject(403)];
  await delivery.rewards([reward("a")]);

  await assert.rejects(delivery.flush(), ServiceError);
  assert.equal(spool.spooled.waiting, 1);
});

test("a reward of an unknown decision waits for another decider to log it", async () => {
  const { delivery, service, clock } = make();

  assert.deepEqual(await delivery.rewards([reward("late")]), ["spooled"]);
  clock.now += 1_000;
  service.decide("late", {});
  assert.deepEqual(await delivery.flush(), { sent: 1, rejected: 0, left: 0 });
  assert.equal(service.counted.get("late"), 1);
});

test("a reward that stays unknown is dropped and counted in the end", async () => {
  const { delivery, clock, requester } = make();
  await delivery.rewards([reward("never")]);
  for (let minute = 0; minute < 5; minute++) {
    clock.now += 60_000;
    await delivery.flush();
  }

  assert.equal(requester.counts["rewards unknown"], 1);
});

test("without time to wait, or without a spool, unknown is said at once", async () => {
  for (const options of [{ unknownMs: 0 }, null]) {
    assert.deepEqual(await make(options).delivery.rewards([reward("x")]), ["unknown"]);
  }
});

test("a reward of a fallback is not sent", async () => {
  const { delivery, service, requester } = make();

  assert.deepEqual(await delivery.rewards([reward("fallback:a"), reward("b")]), [
    "not sent: fallback decision",
    "counted",
  ]);
  assert.deepEqual(service.asked("/v1/reward"), [{ rewards: [reward("b")] }]);
  assert.equal(requester.counts["rewards not sent"], 1);
});

test("many that wait are sent in a few requests", async () => {
  const { delivery, service, spool } = make();
  const ids = Array.from({ length: 1_500 }, (_, n) => `d${n}`);
  for (const id of ids) service.decide(id, {});
  spool.store(ids.map((id) => reward(id)));

  assert.equal((await delivery.flush()).sent, 1_500);
  assert.deepEqual([...service.counted.keys()], ids);
  assert.equal(service.requests.length, 2);
});
