/** Where a spool holds its rewards: a storage such as a browser's, or memory where that refuses. */

/**
 * What a storage needs: localStorage and sessionStorage have it.
 *
 * Without `length` and `key`, which list its names, it belongs to one client at a time.
 */
export interface SpoolStorage {
  getItem(name: string): string | null;
  setItem(name: string, value: string): void;
  removeItem(name: string): void;
  readonly length?: number;
  key?(index: number): string | null;
}

export type Where = "localStorage" | "given storage" | "memory";

/** A storage, if there is one to use; what it is, and why it is memory if it is. */
export interface Found {
  readonly storage: SpoolStorage | null;
  readonly where: Where;
  readonly why: string;
}

/** Return the storage that was given, or the browser's, or none where there is none to use. */
export function findStorage(given: SpoolStorage | undefined): Found {
  const where = given === undefined ? "localStorage" : "given storage";
  if (given === undefined && typeof document === "undefined") {
    const why = "no storage was given, and this is no page of a browser";
    return { storage: null, where: "memory", why };
  }
  try {
    const storage = given ?? globalThis.localStorage; // whose mere mention may be refused
    storage.setItem("fastbandit:probe", "1");
    storage.removeItem("fastbandit:probe");
    return { storage, where, why: "" };
  } catch (error) {
    return { storage: null, where: "memory", why: `${where} is refused: ${String(error)}` };
  }
}

/**
 * Values by their names, in a storage; those that it refuses are in memory.
 *
 * Each value has a name of its own, so that pages that share a storage never overwrite what
 * another of them stored.
 */
export class Values {
  readonly #found: Found;
  readonly #listing: Listing | null;
  readonly #prefix: string;
  readonly #memory = new Map<string, string>();
  readonly #removed = new Set<string>();
  #refusal = "";

  constructor(found: Found, prefix: string) {
    this.#found = found;
    this.#prefix = prefix;
    this.#listing = found.storage === null ? null : listingOf(found.storage, `${prefix}names`);
  }

  /** Where values are: in memory, if one of them had to be. */
  get where(): Where {
    return this.#memory.size === 0 ? this.#found.where : "memory";
  }

  /** Why that is memory, if it is. */
  get why(): string {
    return this.#memory.size === 0 ? this.#found.why : this.#refusal || this.#found.why;
  }

  /** Return all names, in their order. */
  names(): string[] {
    const stored = tried(() => this.#listing?.names()) ?? [];
    const own = stored.filter((name) => name.startsWith(this.#prefix));
    const found = new Set([...own, ...this.#memory.keys()]);
    return [...found].filter((name) => !this.#removed.has(name)).sort();
  }

  get(name: string): string | null {
    return this.#memory.get(name) ?? tried(() => this.#found.storage?.getItem(name)) ?? null;
  }

  /** Store a value by the end of its name. */
  add(end: string, value: string): void {
    this.set(this.#prefix + end, value);
  }

  set(name: string, value: string): void {
    this.#memory.set(name, value);
    const { storage, where } = this.#found;
    if (storage === null) return;
    try {
      this.#listing?.add(name); // before its value: a name without one is passed over
      storage.setItem(name, value);
      this.#memory.delete(name);
    } catch (error) {
      this.#refusal = `${where} refuses to store more: ${String(error)}`;
    }
  }

  remove(name: string): void {
    this.#memory.delete(name);
    try {
      this.#found.storage?.removeItem(name);
      this.#listing?.remove(name);
    } catch {
      this.#removed.add(name); // it stays in the storage, and is at least not seen again
    }
  }
}

/** The names in a storage. */
interface Listing {
  names(): string[];
  add(name: string): void;
  remove(name: string): void;
}

/** Return the names that a storage lists itself, or those in a list that is stored beside. */
function listingOf(storage: SpoolStorage, list: string): Listing {
  if (typeof storage.key === "function" && typeof storage.length === "number") {
    const name = (_: unknown, n: number): string => storage.key?.(n) ?? "";
    const nothing = (): void => undefined;
    const names = (): string[] => Array.from({ length: storage.length ?? 0 }, name);
    return { names, add: nothing, remove: nothing };
  }
  const names = (): string[] => JSON.parse(storage.getItem(list) ?? "[]") as string[];
  const write = (all: string[]): void => storage.setItem(list, JSON.stringify(all));
  return {
    names,
    add: (name) => write([...new Set([...names(), name])]),
    remove: (name) => write(names().filter((one) => one !== name)),
  };
}

/** Do what a storage may refuse: one that cannot be read has nothing for us. */
function tried<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}
