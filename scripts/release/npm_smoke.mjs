// Use an installed package for what it is for, against a little server; print what came as JSON.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { Client, ServiceError } from "fastbandit";

const ids = [];
let isOut = false;
const server = createServer(async (request, response) => {
  let text = "";
  for await (const part of request) text += part;
  const asked = JSON.parse(text || "{}");
  const reply = (status, body) => response.writeHead(status).end(JSON.stringify(body));
  if (isOut) return request.socket.destroy();
  if (request.url === "/v1/reward") {
    return reply(200, {
      rewards: asked.rewards.map(({ decision }) => ({ decision, status: "counted" })),
    });
  }
  if (request.url !== "/v1/select")
    return reply(404, { status: 404, detail: "No route.", fix: "Ask another." });
  ids.push(asked.id);
  if (ids.length === 1) return request.socket.destroy(); // its answer is lost
  const rest = { scores: [0.5], version: 1, catalogue: 0, degraded: false };
  return reply(200, { decision: asked.id, arms: ["arm-1"], ...rest });
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${server.address().port}`;
const client = new Client({ url, timeoutMs: 10_000, retries: { firstMs: 1 } });

const selected = await client.select({ context: [0.1, 0.2] });
assert.equal(selected.arm, "arm-1");
assert.deepEqual(ids, [selected.decision, selected.decision]);
isOut = true;
assert.equal(await client.reward({ decision: selected, value: 1 }), "spooled");
isOut = false;
const flushed = await client.flush();
assert.deepEqual(flushed, { sent: 1, rejected: 0, left: 0 });
await assert.rejects(
  client.status(),
  (error) => error instanceof ServiceError && error.status === 404,
);
console.log(JSON.stringify({ node: process.version, arm: selected.arm, flushed }));
server.closeAllConnections();
server.close();
