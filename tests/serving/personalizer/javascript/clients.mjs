// Makes every call that the vendor's own clients have; prints what each was answered, as JSON.
import { createRequire } from "node:module";

const require = createRequire(`${process.argv[4]}/package.json`);
const { PersonalizerClient } = require("@azure/cognitiveservices-personalizer");
const { ApiKeyCredentials } = require("@azure/ms-rest-js");
const rest = require("@azure-rest/ai-personalizer");

const [url, key] = process.argv.slice(2);
const { contextFeatures, action } = JSON.parse(process.argv[5]);
const actions = ["x", "y", "z"].map((id) => ({ ...action, id }));
const answers = {};

async function old() {
  const inHeader = { "Ocp-Apim-Subscription-Key": key };
  const client = new PersonalizerClient(new ApiKeyCredentials({ inHeader }), url);
  const ranked = await client.rank({ contextFeatures, actions, excludedActions: ["z"] });
  const chosen = ranked.ranking.find((one) => one.id === ranked.rewardActionId);
  answers.old_rank = [ranked._response.status, chosen.probability > 0];
  answers.old_reward = (await client.events.reward(ranked.eventId, { value: 1 }))._response.status;
  const later = await client.rank({ contextFeatures, actions, deferActivation: true });
  answers.old_activate = (await client.events.activate(later.eventId))._response.status;
  try {
    await client.rank({ contextFeatures, actions: [actions[0], actions[0]] });
  } catch (error) {
    answers.old_error = [error.statusCode, error.body.error.code, error.body.error.target];
  }
}

async function call(client, name, path, method, options = {}, ...ids) {
  const response = await client.path(path, ...ids)[method](options);
  const code = response.body?.error?.code ?? "";
  answers[name] = [response.status, rest.isUnexpected(response), code];
  return response.body;
}

async function recent() {
  const client = rest.default(url, { key }, { allowInsecureConnection: true });
  const body = { contextFeatures, actions };
  const ranked = await call(client, "rank", "/rank", "post", { body });
  const id = ranked.eventId;
  await call(client, "reward", "/events/{eventId}/reward", "post", { body: { value: 0.5 } }, id);
  await call(client, "activate", "/events/{eventId}/activate", "post", {}, id);

  const slots = [{ id: "top", baselineAction: "x" }, { id: "side", baselineAction: "y" }];
  const filled = await call(client, "slots_rank", "/multislot/rank", "post", {
    body: { ...body, slots, deferActivation: true },
  });
  const event = filled.eventId;
  await call(client, "slots_activate", "/multislot/events/{eventId}/activate", "post", {}, event);
  await call(client, "slots_reward", "/multislot/events/{eventId}/reward", "post", {
    body: { reward: [{ slotId: "top", value: 1 }, { slotId: "side", value: 0 }] },
  }, event);

  const service = await call(client, "configuration", "/configurations/service", "get");
  await call(client, "configure", "/configurations/service", "put", {
    body: { ...service, defaultReward: 0.125 },
  });
  const policy = await call(client, "policy", "/configurations/policy", "get");
  await call(client, "put_policy", "/configurations/policy", "put", { body: policy });
  await call(client, "reset_policy", "/configurations/policy", "delete");
  await call(client, "apply", "/configurations/applyFromEvaluation", "post", {
    body: { evaluationId: "x", policyName: "y" },
  });

  const startTime = "2020-01-01T00:00:00Z", endTime = "2100-01-01T00:00:00Z";
  const judged = await call(client, "evaluate", "/evaluations", "post", {
    body: { name: "first", startTime, endTime, policies: [] },
  });
  await call(client, "evaluations", "/evaluations", "get");
  await call(client, "evaluation", "/evaluations/{evaluationId}", "get", {}, judged.id);
  await call(client, "drop_evaluation", "/evaluations/{evaluationId}", "delete", {}, judged.id);

  await call(client, "model", "/model", "get");
  await call(client, "model_properties", "/model/properties", "get");
  const octets = { body: new Uint8Array([1]), contentType: "application/octet-stream" };
  await call(client, "import_model", "/model", "put", octets);
  await call(client, "reset_model", "/model", "delete");
  await call(client, "log_properties", "/logs/properties", "get");
  await call(client, "interactions", "/logs/interactions", "post", octets);
  await call(client, "observations", "/logs/observations", "post", octets);
  await call(client, "delete_logs", "/logs", "delete");

  const other = rest.default(url, { key: "fb_no_key" }, { allowInsecureConnection: true });
  await call(other, "wrong_key", "/rank", "post", { body });
}

await old();
await recent();
console.log(JSON.stringify(answers));
