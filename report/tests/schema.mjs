// Holds a document against report/evidence.schema.json: the keywords that the schema keeps to, and an error for any other.
import { readFileSync } from "node:fs";

export const schema = JSON.parse(readFileSync(new URL("../evidence.schema.json", import.meta.url), "utf8"));
const words = ["$schema", "$id", "$defs", "title", "description"]; // say nothing about documents

const typeOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
const isType = (value, type) => (type === "integer" ? Number.isInteger(value) : typeOf(value) === type);
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

const rules = {
  type: (types, value, path) => ([types].flat().some((type) => isType(value, type)) ? [] : [`${path} is ${typeOf(value)}, not ${[types].flat().join(" or ")}`]),
  const: (wanted, value, path) => (same(value, wanted) ? [] : [`${path} is not ${JSON.stringify(wanted)}`]),
  enum: (choices, value, path) => (choices.some((choice) => same(choice, value)) ? [] : [`${path} is ${JSON.stringify(value)}, not one of ${JSON.stringify(choices)}`]),
  minimum: (least, value, path) => (typeof value !== "number" || value >= least ? [] : [`${path} is ${value}, below ${least}`]),
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

/// Sentences, each beginning with the path of what is wrong.
export function problems(value, rule = schema, path = "document") {
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
