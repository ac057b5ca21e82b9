// A service that remembers what it was sent, storages, and a clock that goes on by hand.

/** Answers as the service does; `failures` are used up first, one a request. */
export class FakeService {
  failures = [];
  requests = [];
  decisions = new Map();
  counted = new Map();

  fetch = async (url, init) => {
    const path = url.replace(/^https?:\/\/[^/]+/, "");
    const asked = init.body === undefined ? undefined : JSON.parse(init.body);
    this.requests.push({ method: init.method, url, path, asked, init });
    const failure = this.failures.shift();
    const answer = () => this.answer(path, asked);
    return failure === undefined ? reply(...answer()) : failure(answer, init);
  };

  answer(path, asked) {
    if (path === "/v1/select" && asked.contexts) {
      return [200, { decisions: asked.ids.map((id) => this.decide(id, asked)) }];
    }
    if (path === "/v1/select") return [200, this.decide(asked.id, asked)];
    if (path === "/v1/reward") return this.take(asked.rewards);
    return [404, problem(404, "There is no such route.")];
  }

  /** Choose another arm each time, but the same for the same id. */
  decide(id, { k = 1 }) {
    const first = this.decisions.size;
    const arms = Array.from({ length: k }, (_, n) => `arm ${first + n}`);
    const rest = { scores: arms.map(() => 0.5), version: 3, catalogue: 7, degraded: false };
    if (!this.decisions.has(id)) this.decisions.set(id, { decision: id, arms, ...rest });
    return this.decisions.get(id);
  }

  /** Count rewards; all are rejected where one is above 1. */
  take(rewards) {
    if (rewards.some(({ value }) => value > 1))
      return [422, problem(422, "It needs to be 0 or 1.")];
    return [200, { rewards: rewards.map((reward) => this.count(reward)) }];
  }

  count({ decision, value }) {
    if (!this.decisions.has(decision)) return { decision, status: "unknown" };
    const before = this.counted.get(decision);
    if (before === undefined) this.counted.set(decision, value);
    const again = before === value ? "duplicate" : "conflicting";
    return { decision, status: before === undefined ? "counted" : again };
  }

  asked(path) {
    return this.requests.filter((one) => one.path === path).map(({ asked }) => asked);
  }
}

export function problem(status, detail) {
  return { type: "about:blank", title: "Rejected", status, detail, fix: "Send another." };
}

export function reply(status, body, headers = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Response(text, { status, headers });
}

// -- failures

export const reject = (status, headers) => () =>
  reply(status, problem(status, "Not now."), headers);

export const drop = () => Promise.reject(new TypeError("fetch failed"));

/** Do what was asked, but lose the answer. */
export const dropOnceDone = (answer) => {
  answer();
  return drop();
};

export const babble = () => reply(200, "<html>a proxy's greeting</html>");

export const hang = (_, { signal }) =>
  new Promise((_, refuse) => signal.addEventListener("abort", () => refuse(signal.reason)));

// -- storages

/** What a browser's storage has; it refuses to hold more than `room` values. */
export class FakeStorage {
  values = new Map();
  room = Infinity;

  get length() {
    return this.values.size;
  }
  key(n) {
    return [...this.values.keys()][n] ?? null;
  }
  getItem(name) {
    return this.values.get(name) ?? null;
  }
  setItem(name, value) {
    if (!this.values.has(name) && this.values.size >= this.room) throw new Error("QuotaExceeded");
    this.values.set(name, value);
  }
  removeItem(name) {
    this.values.delete(name);
  }
}

/** A storage with the three methods alone. */
export function plainStorage() {
  const { values, ...storage } = new FakeStorage();
  return {
    values,
    getItem: (name) => values.get(name) ?? null,
    setItem: (name, value) => values.set(name, value),
    removeItem: (name) => values.delete(name),
  };
}

/** A clock, and a sleep that lets it go on. */
export function handClock(now = 1_000_000) {
  const clock = { now, slept: [], read: () => clock.now };
  clock.sleep = async (ms) => {
    clock.slept.push(ms);
    clock.now += ms;
  };
  return clock;
}
