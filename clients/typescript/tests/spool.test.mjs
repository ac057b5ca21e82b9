import assert from "node:assert/strict";
import { test } from "node:test";

import { SettingError, SpoolFull } from "../dist/errors.js";
import { Spool } from "../dist/spool.js";
import { FakeStorage, handClock } from "./fakes.mjs";

const reward = (decision, value = 1) => ({ decision, value });
const rewardsIn = (spool, count = 10) => spool.first(count).map(([, one]) => one);

function make(options = {}) {
  const [storage, clock] = [new FakeStorage(), handClock()];
  return { storage, clock, spool: new Spool({ storage, ...options }, "http://a", clock.read) };
}

test("rewards come back in their order, and stay until they are removed", () => {
  const { spool } = make();
  spool.store([reward("a"), reward("b")]);
  spool.store([reward("c")]);

  assert.deepEqual(rewardsIn(spool, 2), [reward("a"), reward("b")]);
  spool.remove(spool.first(2).map(([name]) => name));
  assert.deepEqual(rewardsIn(spool), [reward("c")]);
});

test("the order holds when the clock goes back", () => {
  const { spool, clock } = make();
  spool.store([reward("a")]);
  clock.now -= 60_000;
  spool.store([reward("b")]);

  assert.deepEqual(rewardsIn(spool), [reward("a"), reward("b")]);
});

test("a later page finds what an earlier one stored", () => {
  const { spool, storage } = make();
  spool.store([reward("a")]);

  assert.deepEqual(rewardsIn(new Spool({ storage }, "http://a")), [reward("a")]);
});

test("services that share a storage have spools of their own", () => {
  const { spool, storage } = make();
  spool.store([reward("a")]);

  for (const other of ["http://a:8080", "http://", "http://b"]) {
    assert.deepEqual(rewardsIn(new Spool({ storage }, other)), []);
  }
  assert.deepEqual(rewardsIn(new Spool({ storage, name: "http://a" }, "http://b")), [reward("a")]);
});

test("a full spool says so, and stores nothing of what came", () => {
  const { spool } = make({ limit: 2 });
  spool.store([reward("a")]);

  assert.throws(() => spool.store([reward("b"), reward("c")]), SpoolFull);
  assert.deepEqual(rewardsIn(spool), [reward("a")]);
});

test("a reward of an unknown decision waits twice as long each time, then it is over", () => {
  const { spool, clock } = make({ unknownMs: 5_000 });
  spool.store([reward("a")], true);
  const sent = [];

  for (let second = 1; second <= 20; second++) {
    clock.now += 1_000;
    const names = spool.first(1).map(([name]) => name);
    if (names.length === 0) continue;
    sent.push(second);
    spool.remove(spool.postpone(names));
  }

  assert.deepEqual(sent, [1, 2, 4, 8]);
  assert.equal(spool.spooled.waiting, 0);
});

test("a reward waits behind one of the same decision", () => {
  const { spool, clock } = make();
  spool.store([reward("a", 0)], true);
  spool.store([reward("a", 1), reward("b")]);

  assert.deepEqual(rewardsIn(spool), [reward("b")]);
  assert.deepEqual([...spool.decisions()], ["a", "b"]);
  clock.now += 1_000;
  assert.deepEqual(rewardsIn(spool), [reward("a", 0), reward("a", 1), reward("b")]);
});

test("what is rejected is set aside with the reason until it is taken", () => {
  const { spool } = make();
  spool.store([reward("a", 7)]);
  spool.reject(spool.first(1)[0][0], "It needs to be 0 or 1.");

  assert.deepEqual(rewardsIn(spool), []);
  assert.deepEqual([spool.spooled.waiting, spool.spooled.rejected], [0, 1]);
  assert.deepEqual(spool.takeRejected(), [
    { reward: reward("a", 7), why: "It needs to be 0 or 1." },
  ]);
  assert.deepEqual(spool.takeRejected(), []);
});

test("what others put below its name is passed over", () => {
  const { spool, storage } = make();
  spool.store([reward("a")]);
  const [name] = storage.values.keys();
  for (const other of ["{", "null", "[]", '{"reward":1}']) storage.setItem(name + other, other);

  assert.deepEqual(rewardsIn(spool), [reward("a")]);
});

test("room for nothing is no setting", () => {
  assert.throws(() => make({ limit: 0 }), SettingError);
});
