import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";

import { sendBy } from "../dist/transport.js";

const asked = [];
let server;
let url;

before(async () => {
  server = createServer((request, response) => {
    asked.push(request.headers);
    if (request.url === "/slow")
      response.write("{"); // and no more
    else if (request.url === "/moved") response.writeHead(302, { Location: "/" }).end();
    else response.writeHead(503, { "Retry-After": "2" }).end("{}");
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  url = `http://127.0.0.1:${server.address().port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

const sent = { method: "POST", body: "{}", ms: 5_000, outlivesPage: false };

test("an answer has its status, its body and Retry-After", async () => {
  const outcome = await sendBy(fetch, undefined)({ ...sent, url });

  assert.deepEqual(outcome, { status: 503, body: "{}", retryAfter: "2" });
});

test("the key is sent along, and that the body is JSON", async () => {
  await sendBy(fetch, "fb_a_b")({ ...sent, url });

  assert.equal(asked.at(-1).authorization, "Bearer fb_a_b");
  assert.equal(asked.at(-1)["content-type"], "application/json");
});

test("an answer that does not end in time is none", async () => {
  const outcome = await sendBy(fetch, undefined)({ ...sent, url: `${url}/slow`, ms: 50 });

  assert.deepEqual(outcome, { why: "no answer within 50 ms" });
});

test("a redirect is not followed: it could lead a key elsewhere", async () => {
  assert.equal((await sendBy(fetch, "fb_a_b")({ ...sent, url: `${url}/moved` })).status, 302);
});

test("where nothing listens the reason is said", async () => {
  const { why } = await sendBy(fetch, undefined)({ ...sent, url: "http://127.0.0.1:1" });

  assert.match(why, /fetch failed: .*(ECONNREFUSED|bad port)/);
});

test("only what is small may outlive a page", async () => {
  const given = [];
  const send = sendBy(
    async (_, init) => given.push(init.keepalive) && new Response("{}"),
    undefined,
  );

  await send({ ...sent, url, outlivesPage: true });
  await send({ ...sent, url, outlivesPage: true, body: "x".repeat(30_000) });
  await send({ ...sent, url });

  assert.deepEqual(given, [true, false, false]);
});
