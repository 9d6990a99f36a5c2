// TypeScript types of the document, from its JSON Schema, and the schema itself without its words, for the page that reads
// documents by it: node types.mjs SCHEMA OUTPUT
// Knows the keywords that evidence.schema.json keeps to, and refuses any other.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

const known = ["$schema", "$id", "$defs", "$ref", "title", "description", "type", "required", "properties", "additionalProperties", "items", "enum", "const", "oneOf", "anyOf", "minimum", "minItems", "maxItems", "positional", "index"];
const words = ["$schema", "$id", "title", "description"];
const simple = { string: "string", number: "number", integer: "number", boolean: "boolean", null: "null" };

const comment = (schema, indent) => (schema.description ? `${indent}/** ${schema.description.replaceAll("*/", "*")} */\n` : "");
const wrapped = (text) => (text.includes(" | ") ? `(${text})` : text);

function objectType(schema, indent) {
  const inner = indent + "  ";
  const more = schema.additionalProperties;
  const properties = Object.entries(schema.properties ?? {}).map(([name, value]) =>
    `${comment(value, inner)}${inner}${name}${schema.required?.includes(name) ? "" : "?"}: ${type(value, inner)};\n`);
  if (properties.length) return `{\n${properties.join("")}${indent}}`;
  return `Record<string, ${more && typeof more === "object" ? type(more, indent) : "unknown"}>`;
}

function arrayType(schema, indent) {
  const item = type(schema.items, indent);
  if (schema.minItems !== undefined && schema.minItems === schema.maxItems) return `[${Array(schema.minItems).fill(item).join(", ")}]`;
  return `${wrapped(item)}[]`;
}

function type(schema, indent = "") {
  for (const keyword of Object.keys(schema)) if (!known.includes(keyword)) throw new Error(`types.mjs does not know the keyword ${keyword}`);
  if (schema.$ref) return schema.$ref.replace("#/$defs/", "");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if ((schema.oneOf ?? schema.anyOf)?.filter((one) => one.type !== "null").length > 1) throw new Error("types.mjs knows a choice between one thing and null alone");
  if (schema.oneOf ?? schema.anyOf) return (schema.oneOf ?? schema.anyOf).map((one) => type(one, indent)).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((one) => type({ ...schema, type: one }, indent)).join(" | ");
  if (schema.type === "object") return objectType(schema, indent);
  if (schema.type === "array") return arrayType(schema, indent);
  if (!simple[schema.type]) throw new Error(`types.mjs does not know the type ${schema.type}`);
  return simple[schema.type];
}

const [source, output] = process.argv.slice(2);
const schema = JSON.parse(readFileSync(source, "utf8"));
const types = Object.entries({ [schema.title]: { ...schema, $defs: undefined }, ...schema.$defs }).map(([name, one]) => `${comment(one, "")}export type ${name} = ${type(one)};\n`);
mkdirSync(dirname(output), { recursive: true });
const rules = JSON.stringify(schema, (key, value) => (words.includes(key) && typeof value === "string" ? undefined : value)); // a field may be called `title`: that one is an object
writeFileSync(output, `// Made from ${source} by types.mjs.\n\n${types.join("\n")}\nexport const schema: object = ${rules};\n`);
