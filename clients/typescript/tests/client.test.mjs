import assert from "node:assert/strict";
import { test } from "node:test";

import {
  Client,
  InputError,
  ServiceError,
  ServiceUnavailable,
  SettingError,
} from "../dist/index.js";
import { babble, drop, dropOnceDone, FakeService, FakeStorage, hang, reject } from "./fakes.mjs";

const QUICK = { firstMs: 0, mostMs: 0 };

function make(options = {}) {
  const service = new FakeService();
  const base = { url: "http://x", fetch: service.fetch, retries: QUICK, timeoutMs: 20_000 };
  return { service, client: new Client({ ...base, ...options }) };
}

test("a decision has its arm, its id and what the service said beside", async () => {
  const { client, service } = make();
  const selected = await client.select({ context: [1, 2], k: 2, eligible: ["arm 0", "arm 1"] });

  const { id, ...asked } = service.asked("/v1/select")[0];
  assert.deepEqual(asked, { context: [1, 2], k: 2, eligible: ["arm 0", "arm 1"] });
  assert.equal(selected.decision, id);
  assert.deepEqual([selected.arm, selected.arms], ["arm 0", ["arm 0", "arm 1"]]);
  assert.deepEqual([selected.version, selected.isFallback], [3, false]);
});

for (const [what, failure] of Object.entries({
  "a lost answer": dropOnceDone,
  "a 503": reject(503),
  babble,
})) {
  test(`after ${what} the same id is sent, and the decision is the same`, async () => {
    const { client, service } = make();
    service.failures = [failure];
    const selected = await client.select({ context: [1] });

    const [first, second] = service.asked("/v1/select");
    assert.deepEqual(second, first);
    assert.equal(service.decisions.size, 1);
    assert.equal(selected.arm, "arm 0");
    assert.equal(client.counts.retries, 1);
  });
}

test("many contexts go in one request, each with an id", async () => {
  const { client, service } = make();
  const [one, two] = await client.selectMany({
    contexts: [[1], { a: 2 }],
    baselines: ["x", { arm: 3 }],
  });

  const [{ ids, ...asked }] = service.asked("/v1/select");
  assert.deepEqual(asked, { contexts: [[1], { a: 2 }], baselines: [{ arm: "x" }, { arm: 3 }] });
  assert.deepEqual([one.decision, two.decision], ids);
  assert.deepEqual(await client.selectMany({ contexts: [] }), []);
  assert.equal(service.requests.length, 1);
});

test("a strict client says so with each select", async () => {
  const { client, service } = make({ strict: true });
  await client.select({ context: [1] });
  await client.selectMany({ contexts: [[1]] });

  assert.deepEqual(
    service.asked("/v1/select").map(({ strict }) => strict),
    [true, true],
  );
});

test("the fallback of the call goes before that of the client", async () => {
  const { client, service } = make({ fallback: "home", retries: { tries: 1 } });
  service.failures = [drop, drop, drop];

  assert.equal((await client.select({ context: [1] })).arm, "home");
  const given = await client.select({ context: [1], fallback: ([n]) => [`arm for ${n}`, "home"] });
  assert.deepEqual([given.arms, given.isFallback], [["arm for 1", "home"], true]);
  const many = await client.selectMany({ contexts: [[1], [2]] });
  assert.deepEqual(
    many.map(({ arm }) => arm),
    ["home", "home"],
  );
  assert.equal(client.counts.fallbacks, 4);
  assert.equal(await client.reward({ decision: given, value: 1 }), "not sent: fallback decision");
});

test("no fallback hides what the service rejects", async () => {
  const { client, service } = make({ fallback: "home" });
  service.failures = [reject(422)];

  await assert.rejects(client.select({ context: [1] }), ServiceError);
});

test("without a fallback no answer is an error", async () => {
  const { client, service } = make({ timeoutMs: 60 });
  service.failures = [hang, hang, hang, hang];

  await assert.rejects(client.select({ context: [1] }), ServiceUnavailable);
});

test("the spool says how much waits, and where", async () => {
  const { client, service } = make({ spool: new FakeStorage(), retries: { tries: 1 } });
  const selected = await client.select({ context: [1] });
  service.failures = [drop];

  assert.equal(await client.reward({ decision: selected, value: 1 }), "spooled");
  assert.deepEqual(client.spooled, { waiting: 1, rejected: 0, where: "given storage", why: "" });
  assert.deepEqual(await client.flush(), { sent: 1, rejected: 0, left: 0 });
  assert.equal(client.spooled.waiting, 0);
});

test("a spool needs no storage, and says that it is memory", () => {
  assert.equal(make().client.spooled.where, "memory");
  assert.equal(make({ spool: { limit: 5 } }).client.spooled.where, "memory");
  assert.equal(make({ spool: false }).client.spooled, null);
});

test("a service that is not ready says why", async () => {
  const { client, service } = make();
  const said = { status: "not ready", reasons: [{ name: "no version", detail: "x", fix: "y" }] };
  service.failures = [() => new Response(JSON.stringify(said), { status: 503 })];

  assert.deepEqual(await client.ready(), said);
  assert.equal(service.requests.length, 1);
  service.failures = [drop];
  await assert.rejects(client.ready(), ServiceUnavailable);
});

test("ids of decisions and arms are quoted in paths", async () => {
  const { client, service } = make();
  await client.explanation({ decision: "a:b", arm: "x/y?" }).catch(() => undefined);

  assert.equal(service.requests[0].path, "/v1/decisions/a%3Ab/explanation?arm=x%2Fy%3F");
});

test("wrong settings and arguments are said at once", async () => {
  assert.throws(() => new Client({ url: "nowhere" }), SettingError);
  assert.throws(() => make({ timeoutMs: -1 }), SettingError);
  await assert.rejects(make().client.select({ context: [1], id: "a b" }), InputError);
  await assert.rejects(make().client.reward({ decision: "a", value: NaN }), InputError);
  await assert.rejects(make().client.status({ timeoutMs: 0 }), SettingError);
  await assert.rejects(make().client.upsertArms([{ id: 1n }]), InputError);
});
