import assert from "node:assert/strict";
import { test } from "node:test";

import { findStorage, Values } from "../dist/storage.js";
import { FakeStorage, plainStorage } from "./fakes.mjs";

const KINDS = [
  ["a storage that lists its names", () => findStorage(new FakeStorage())],
  ["a storage with three methods", () => findStorage(plainStorage())],
  ["memory", () => findStorage(undefined)],
];

for (const [kind, find] of KINDS) {
  test(`${kind} gives back what was stored, in the order of its names`, () => {
    const values = new Values(find(), "mine:");

    values.add("b", "2");
    values.add("a", "1");
    values.set("mine:b", "3");
    assert.deepEqual(values.names(), ["mine:a", "mine:b"]);
    assert.equal(values.get("mine:b"), "3");
    values.remove("mine:a");
    assert.deepEqual(values.names(), ["mine:b"]);
    assert.equal(values.get("mine:a"), null);
  });
}

for (const make of [() => new FakeStorage(), plainStorage]) {
  test("what one stored another finds", () => {
    const storage = make();
    new Values(findStorage(storage), "mine:").add("a", "1");

    const other = new Values(findStorage(storage), "mine:");
    assert.deepEqual(other.names(), ["mine:a"]);
    assert.equal(other.get("mine:a"), "1");
  });
}

test("two that store at once overwrite nothing of each other", () => {
  const storage = new FakeStorage();
  const [one, two] = [1, 2].map(() => new Values(findStorage(storage), "mine:"));

  one.add("a", "1");
  two.add("b", "2");
  one.remove("mine:a");
  assert.deepEqual(two.names(), ["mine:b"]);
});

test("names of others are left alone", () => {
  const storage = new FakeStorage();
  storage.setItem("theirs", "1");

  assert.deepEqual(new Values(findStorage(storage), "mine:").names(), []);
});

test("without a page and a storage it is memory, and says why", () => {
  const { where, why } = findStorage(undefined);

  assert.equal(where, "memory");
  assert.match(why, /no page of a browser/);
});

test("a storage that refuses at the start is not used", () => {
  const storage = new FakeStorage();
  storage.room = 0;

  const { where, why } = findStorage(storage);
  assert.equal(where, "memory");
  assert.match(why, /given storage is refused: Error: QuotaExceeded/);
});

test("what a full storage refuses is in memory, beside what is stored", () => {
  const storage = new FakeStorage();
  const values = new Values(findStorage(storage), "mine:");

  values.add("a", "1");
  storage.room = 1;
  values.add("b", "2");
  assert.deepEqual(values.names(), ["mine:a", "mine:b"]);
  assert.equal(values.get("mine:b"), "2");
  assert.equal(values.where, "memory");
  assert.match(values.why, /refuses to store more: Error: QuotaExceeded/);
  values.remove("mine:b");
  assert.equal(values.where, "given storage");
});

test("what a storage refuses to remove is not seen again", () => {
  const storage = new FakeStorage();
  const values = new Values(findStorage(storage), "mine:");
  values.add("a", "1");
  storage.removeItem = () => {
    throw new Error("no");
  };

  values.remove("mine:a");
  assert.deepEqual(values.names(), []);
});
