// Write src/api.ts: the types of all that is sent and answered, from the description of the service.
//
//     npm ci && npm run types            writes the file
//     npm run types -- OUT [DOCUMENT]    writes another file, from another document
//
// Only the shapes are taken: routes are few, and the client calls them by hand.

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const here = new URL(".", import.meta.url);
const [
  out = new URL("../src/api.ts", here),
  document = new URL("../../../tests/serving/openapi-v1.json", here),
] = process.argv.slice(2);
const bytes = readFileSync(document);
const described = JSON.parse(bytes);
const shapes = { ...described, paths: {}, components: { schemas: described.components.schemas } };
const nodes = await openapiTS(shapes, {
  defaultNonNullable: false, // a field with a default may be left out
  emptyObjectsUnknown: true, // an object without named fields may have any
  immutable: true,
});
const names = Object.keys(described.components.schemas).sort();
const text = astToString(nodes).slice(astToString(nodes).indexOf("export interface components"));
const head = `/**
 * What is sent and answered, made from the description of the service by \`npm run types\`.
 *
 * Of the document with the SHA-256 ${createHash("sha256").update(bytes).digest("hex")}.
 */

`;
const roots = names.map((name) => `export type ${name} = components["schemas"]["${name}"];\n`);
writeFileSync(out, head + text.replace(/[ \t]+$/gm, "").trimEnd() + "\n\n" + roots.join(""));
