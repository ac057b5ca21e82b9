import assert from "node:assert/strict";
import { test } from "node:test";

import { checkUrls, Deciders } from "../dist/deciders.js";
import { SettingError } from "../dist/errors.js";
import { handClock } from "./fakes.mjs";

test("one that failed comes last for a second, then for two", () => {
  const clock = handClock();
  const deciders = new Deciders(["a", "b"], clock.read);

  deciders.noteFailure("a", 0);
  assert.deepEqual(deciders.order(), ["b", "a"]);
  clock.now += 1_000;
  assert.deepEqual(deciders.order(), ["a", "b"]);
  deciders.noteFailure("a", 0);
  clock.now += 1_999;
  assert.deepEqual(deciders.order(), ["b", "a"]);
});

test("one rests as long as it asks for", () => {
  const clock = handClock();
  const deciders = new Deciders(["a", "b"], clock.read);

  deciders.noteFailure("a", 60_000);
  clock.now += 59_999;
  assert.deepEqual(deciders.order(), ["b", "a"]);
});

test("one that answers again is asked first again", () => {
  const deciders = new Deciders(["a", "b"], handClock().read);

  deciders.noteFailure("a", 0);
  deciders.noteWell("a");

  assert.deepEqual(deciders.order(), ["a", "b"]);
});

test("addresses lose the slash at their end, and come once each", () => {
  assert.deepEqual(checkUrls(["http://a:1/", "http://a:1", "https://b/api/"]), [
    "http://a:1",
    "https://b/api",
  ]);
});

for (const wrong of ["", "a:8080", "ftp://a", "/api", "http://a?b=c", "http://me:too@a", []]) {
  test(`${JSON.stringify(wrong)} is no address of a service`, () => {
    assert.throws(() => checkUrls(wrong), SettingError);
  });
}
