// Holds a document against report/evidence.schema.json: the keywords that the schema keeps to, and an error for any other.
import { readFileSync } from "node:fs";

export const schema = JSON.parse(readFileSync(new URL("../evidence.schema.json", import.meta.url), "utf8"));
const words = ["$schema", "$id", "$defs", "title", "description", "positional"]; // say nothing about documents

const typeOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
const isType = (value, type) => (type === "integer" ? Number.isInteger(value) : typeOf(value) === type);
const listAt = (document, path) => path.split(".").reduce((value, key) => value?.[key], document);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

const rules = {
  type: (types, value, path) => ([types].flat().some((type) => isType(value, type)) ? [] : [`${path} is ${typeOf(value)}, not ${[types].flat().join(" or ")}`]),
  const: (wanted, value, path) => (same(value, wanted) ? [] : [`${path} is not ${JSON.stringify(wanted)}`]),
  enum: (choices, value, path) => (choices.some((choice) => same(choice, value)) ? [] : [`${path} is ${JSON.stringify(value)}, not one of ${JSON.stringify(choices)}`]),
  minimum: (least, value, path) => (typeof value !== "number" || value >= least ? [] : [`${path} is ${value}, below ${least}`]),
  index: (list, value, path) => (typeof value !== "number" || value < (listAt(root, list)?.length ?? 0) ? [] : [`${path} is ${value}, beyond ${list}`]),
  minItems: (least, value, path) => (!Array.isArray(value) || value.length >= least ? [] : [`${path} has ${value.length} items, fewer than ${least}`]),
  maxItems: (most, value, path) => (!Array.isArray(value) || value.length <= most ? [] : [`${path} has ${value.length} items, more than ${most}`]),
  required: (names, value, path) => (typeOf(value) !== "object" ? [] : names.filter((name) => !(name in value)).map((name) => `${path} lacks ${name}`)),
  properties: (each, value, path) => (typeOf(value) !== "object" ? [] : Object.entries(each).flatMap(([name, one]) => (name in value ? problems(value[name], one, `${path}.${name}`) : []))),
  additionalProperties(rule, value, path, { properties = {} }) {
    if (typeOf(value) !== "object") return [];
    const more = Object.keys(value).filter((name) => !(name in properties));
    return rule === false ? more.map((name) => `${path} has ${name}, which the schema does not know`) : more.flatMap((name) => problems(value[name], rule, `${path}.${name}`));
  },
  items: (rule, value, path) => (Array.isArray(value) ? value.flatMap((one, i) => problems(one, rule, `${path}[${i}]`)) : []),
  oneOf: (choices, value, path) => (choices.filter((choice) => !problems(value, choice, path).length).length === 1 ? [] : [`${path} fits none, or several, of its forms`]),
  anyOf: (choices, value, path) => (choices.some((choice) => !problems(value, choice, path).length) ? [] : [`${path} fits none of its forms`]),
  $ref: (name, value, path) => problems(value, schema.$defs[name.replace("#/$defs/", "")], path),
};

let root; // the document that is looked at

/// Sentences, each beginning with the path of what is wrong.
export function problems(value, rule = schema, path = "document") {
  if (rule === schema) root = value;
  if (rule === undefined) throw new Error(`${path}: the schema refers to what it does not define`);
  return Object.entries(rule).flatMap(([keyword, argument]) => {
    if (words.includes(keyword)) return [];
    if (!rules[keyword]) throw new Error(`${path}: the schema uses the keyword ${keyword}, which its validators do not know`);
    return rules[keyword](argument, value, path, rule);
  });
}

/// Adds the names of all fields that a document fills: `Report.run`, `Unit.zeros`. Empty lists, empty texts and null fill nothing.
export function filled(value, seen, rule = schema, path = schema.title) {
  if (rule.$ref) {
    const name = rule.$ref.replace("#/$defs/", "");
    return filled(value, seen, schema.$defs[name], name);
  }
  for (const one of [...(rule.oneOf ?? []), ...(rule.anyOf ?? [])]) filled(value, seen, one, path);
  if (Array.isArray(value)) value.forEach((one) => rule.items && filled(one, seen, rule.items, path));
  if (typeOf(value) !== "object") return;
  for (const [name, one] of Object.entries(value)) {
    const known = rule.properties?.[name];
    if (known && one !== null && one !== "" && !(typeof one === "object" && !Object.keys(one).length)) seen.add(`${path}.${name}`);
    if (known ?? typeof rule.additionalProperties === "object") filled(one, seen, known ?? rule.additionalProperties, known ? `${path}.${name}` : path);
  }
}

const picture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// A small document that has every field of the schema, with three entries in every list. `shows`: what its inputs are to a person.
export function example(shows = "pictures") {
  const report = exampleOf(schema);
  const { inputs } = report;
  Object.assign(inputs, { split: [0, 0, 0], label: [0, 1, 2], predicted: [0, 2, 1], right: [1, 0, 0], before: [0, 1, 0] });
  if (shows !== "pictures") inputs.pictures = {};
  if (shows !== "rows") delete inputs.table;
  return report;
}

function exampleOf(rule, name = "") {
  if (rule.$ref) return exampleOf(schema.$defs[rule.$ref.replace("#/$defs/", "")], name);
  if (rule.const !== undefined) return rule.const;
  if (rule.enum) return rule.enum[0];
  if (rule.oneOf ?? rule.anyOf) return exampleOf((rule.oneOf ?? rule.anyOf)[0], name);
  const type = [rule.type].flat()[0];
  if (type === "string") return ["pictures", "heat"].includes(name) ? picture : name;
  if (type === "boolean") return name !== "holds"; // so that set-ups that were tried are shown
  if (type === "integer") return rule.minimum ?? 0;
  if (type === "number") return 0.5;
  const some = Array.from({ length: Math.min(3, rule.maxItems ?? 3) }, (_, i) => i);
  if (type === "array") return some.map((i) => different(exampleOf(rule.items, name), i));
  if (rule.properties) return Object.fromEntries(Object.entries(rule.properties).map(([key, one]) => [key, exampleOf(one, key)]));
  return Object.fromEntries(some.map((i) => [i, typeof rule.additionalProperties === "object" ? exampleOf(rule.additionalProperties, name) : i]));
}

/// Entries of a list, told apart: names end in their place, positions are it, values rise.
function different(value, i) {
  if (typeof value === "string") return value.startsWith("data:") ? value : `${value} ${i}`;
  if (typeof value === "number") return Number.isInteger(value) ? i : value * (1 + i / 4);
  if (Array.isArray(value) || value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, ["name", "id", "split", "sample", "row", "low", "high", "inputs"].includes(key) && typeof one !== "object" ? different(one, i) : one]));
}
