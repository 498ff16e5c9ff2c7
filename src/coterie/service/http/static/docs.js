"use strict";
// The routes of the service and their messages, from its own description; nothing comes from elsewhere.

const find = (id) => document.getElementById(id);
const nameOf = (schema) => schema.$ref.split("/").at(-1);

function element(kind, text = "", ...children) {
  const made = document.createElement(kind);
  made.textContent = text;
  made.append(...children);
  return made;
}

function typeOf(schema = {}) {
  if (schema.$ref) return nameOf(schema);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${schema.items ? typeOf(schema.items) : "anything"}`;
  if (schema.type === "object") return "table";
  return schema.type ?? "anything";
}

function limitsOf(schema) {
  const words = { minimum: "at least", maximum: "at most", exclusiveMinimum: "above", exclusiveMaximum: "below", minLength: "length at least", maxLength: "length at most", minItems: "items at least", maxItems: "items at most", pattern: "matches" };
  const parts = [schema, ...(schema.anyOf ?? [])];
  const found = parts.flatMap((part) => Object.entries(words).filter(([name]) => part[name] !== undefined).map(([name, word]) => `${word} ${part[name]}`));
  if (schema.default !== undefined) found.push(`default ${JSON.stringify(schema.default)}`);
  return found.join(", ");
}

// A type that names a message links to it.
function typeCell(schema = {}) {
  const cell = document.createElement("td"), text = typeOf(schema), named = JSON.stringify(schema).match(/schemas\/(\w+)/);
  if (!named) return element("td", text);
  const link = element("a", text);
  link.href = `#message-${named[1]}`;
  cell.append(link);
  return cell;
}

function table(names, rows) {
  const made = document.createElement("table"), head = made.createTHead().insertRow();
  for (const name of names) { const cell = element("th", name); cell.scope = "col"; head.append(cell); }
  for (const cells of rows) made.insertRow().append(...cells);
  const scrolled = element("div", "", made);
  scrolled.className = "tables";
  return scrolled;
}

function example(schema, schemas, depth = 0) {
  if (depth > 6) return null;
  if (schema.$ref) return example(schemas[nameOf(schema)], schemas, depth + 1);
  if (schema.anyOf) return example(schema.anyOf.find((one) => one.type !== "null") ?? schema.anyOf[0], schemas, depth + 1);
  if (schema.enum) return schema.enum[0];
  if (schema.type === "object") {
    const needed = new Set(schema.required ?? []);
    return Object.fromEntries(Object.entries(schema.properties ?? {}).filter(([name]) => needed.has(name)).map(([name, one]) => [name, example(one, schemas, depth + 1)]));
  }
  if (schema.type === "array") return schema.items ? Array(schema.minItems > 1 ? schema.minItems : 1).fill(example(schema.items, schemas, depth + 1)) : [];
  if (schema.type === "string") return "text";
  return schema.type === "boolean" ? false : 1;
}

function command(method, path, operation, schemas) {
  const body = operation.requestBody?.content ?? {};
  const lines = [`curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}'${location.origin}${path}'`];
  if (body["application/json"]) lines.push(`--json '${JSON.stringify(example(body["application/json"].schema, schemas))}'`);
  if (body["application/x-ndjson"]) lines.push("-H 'Content-Type: application/x-ndjson' --data-binary @log.jsonl");
  return lines.join(" \\\n  ");
}

function describe(path, method, operation, schemas) {
  const made = document.createElement("details"), summary = document.createElement("summary");
  summary.append(element("b", method.toUpperCase()), " ", element("code", path), " ", element("span", operation.summary));
  made.append(summary, element("p", operation.description), element("pre", command(method, path, operation, schemas)));
  if (operation.parameters.length)
    made.append(table(["parameter", "in", "type", "limits"], operation.parameters.map((one) => [element("td", one.name), element("td", one.in), typeCell(one.schema), element("td", limitsOf(one.schema))])));
  const sent = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  const rows = sent ? [[element("td", "request"), typeCell(sent), element("td", "")]] : [];
  for (const [status, answer] of Object.entries(operation.responses))
    rows.push([element("td", status), answer.content ? typeCell(Object.values(answer.content)[0].schema) : element("td", "nothing"), element("td", answer.description)]);
  made.append(table(["", "message", ""], rows));
  made.dataset.text = `${method} ${path} ${operation.summary}`.toLowerCase();
  return made;
}

function describeMessage(name, schema) {
  const made = document.createElement("article"), title = element("h3", name), needed = new Set(schema.required ?? []);
  made.id = `message-${name}`;
  made.append(title, element("p", schema.description ?? ""));
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length) made.append(table(["field", "type", "limits"], fields.map(([field, one]) => [element("td", needed.has(field) ? `${field} *` : field), typeCell(one), element("td", limitsOf(one))])));
  return made;
}

async function show() {
  const found = await (await fetch("/openapi.json")).json(), schemas = found.components.schemas;
  find("version").textContent = `version ${found.info.version}`;
  const routes = Object.entries(found.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => describe(path, method, operation, schemas)));
  find("routes").replaceChildren(...routes);
  find("messages").replaceChildren(element("p", "Fields with * are required."), ...Object.keys(schemas).sort().map((name) => describeMessage(name, schemas[name])));
  find("filter").addEventListener("input", () => routes.forEach((one) => { one.hidden = !one.dataset.text.includes(find("filter").value.toLowerCase()); }));
}

find("filter").form.addEventListener("submit", (event) => event.preventDefault());
show().catch((error) => { find("routes").textContent = error.message; });
