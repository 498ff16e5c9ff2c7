"use strict";
// Frames come as server-sent events over fetch, so that a key can be sent; ids are only ever set as text.

const find = (id) => document.getElementById(id);
const kept = 300;
let policy = null, frames = [], wait = 500, reading = null;
const map = new UserMap(find("map"), explain);

function headers() {
  const key = sessionStorage.getItem("coterie-key");
  return key ? { Authorization: `Bearer ${key}` } : {};
}

async function ask(path, options = {}) {
  const response = await fetch(path, { headers: headers(), ...options });
  if (response.status === 401) {
    find("key-dialog").showModal();
    await new Promise((done) => find("key-dialog").addEventListener("close", done, { once: true }));
    sessionStorage.setItem("coterie-key", find("key").value.trim());
    return ask(path, options);
  }
  if (!response.ok) throw new Error((await response.json()).detail);
  return response;
}

function say(text, live) {
  find("state").textContent = text;
  find("state").dataset.live = live ? "yes" : "no";
}

async function choosePolicies() {
  const told = await (await ask("/v1/policies")).json();
  const names = told.policies.sort((a, b) => b.users - a.users).map((one) => one.name);
  find("policy").replaceChildren(...names.map((name) => new Option(name, name, false, name === policy)));
  if (!names.includes(policy)) policy = names[0];
  find("policy").value = policy;
}

async function listen() {
  for (;;) {
    const mine = (reading = new AbortController());
    try {
      await choosePolicies();
      const response = await ask(`/v1/policies/${encodeURIComponent(policy)}/live`, { signal: mine.signal });
      await readFrames(response.body.getReader());
      throw new Error("the service has closed the stream");
    } catch (error) {
      if (mine.signal.aborted) continue;
      say(`not live: ${error.message}`, false);
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, 5000);
    }
  }
}

async function readFrames(reader) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) take(part);
  }
}

function take(part) {
  const lines = part.split("\n");
  const data = lines.find((line) => line.startsWith("data: "));
  if (!data) return;
  if (lines.includes("event: trouble")) return say(`not live: ${JSON.parse(data.slice(6))}`, false);
  wait = 500;
  frames = [...frames.slice(-kept + 1), JSON.parse(data.slice(6))];
  say("live", true);
  show(frames.at(-1));
}

function mean(now, before, field) {
  const [sum, count] = [now[field][0] - before[field][0], now[field][1] - before[field][1]];
  return count > 0 ? sum / count : null;
}

function show(frame) {
  const before = frames[Math.max(0, frames.length - 11)];
  const seconds = Math.max(frame.at - before.at, 1e-3);
  const number = (value, digits = 0) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits }));
  const milliseconds = (value) => (value === null ? "–" : `≤ ${number(value * 1000, 1)} ms`);
  const cells = {
    [`Policy, ${frame.mode}`]: frame.kind,
    Users: number(frame.users),
    Clusters: number(frame.n_clusters),
    Rounds: number(frame.rounds),
    "Decisions a second": number((frame.decisions - before.decisions) / seconds, 1),
    Exploration: frame.exploring ? "uniform now" : `${number(frame.uniform_share * 100, 1)} % uniform`,
    "Waiting for reward": number(frame.waiting),
    "Expired": number(frame.expired),
    "Latency, median": milliseconds(frame.p50),
    "Latency, 99 %": milliseconds(frame.p99),
    Queue: number(frame.queue),
    "Noise σ̂": number(frame.sigma, 3),
  };
  find("numbers").replaceChildren(...Object.entries(cells).map(([name, value]) => {
    const cell = document.createElement("div"), term = document.createElement("dt"), shown = document.createElement("dd");
    term.textContent = name;
    shown.textContent = value;
    cell.append(term, shown);
    return cell;
  }));
  map.update(frame.points);
  drawSizes(find("sizes"), frames);
  const window = (place) => frames[Math.max(0, place - 10)];
  drawLines(find("reward"), ["own", "drawn"].map((field, place) => ({
    colour: ["--mark", "--other"][place],
    values: frames.map((one, at) => mean(one, window(at), field)),
  })));
  if (find("known").childElementCount !== Math.min(frame.points.length, 200))
    find("known").replaceChildren(...frame.points.slice(0, 200).map(([id]) => { const one = new Option(); one.value = id; return one; }));
}

function table(caption, names, rows) {
  const made = document.createElement("table");
  made.createCaption().textContent = caption;
  const head = made.createTHead().insertRow();
  for (const name of names) { const cell = document.createElement("th"); cell.textContent = name; head.append(cell); }
  for (const row of rows) { const line = made.insertRow(); for (const value of row) line.insertCell().textContent = value; }
  return made;
}

async function explain(user) {
  find("user").value = user;
  map.chosen = user;
  const place = `/v1/policies/${encodeURIComponent(policy)}`, target = find("explanation");
  try {
    const told = await (await ask(`${place}/users/${encodeURIComponent(user)}`)).json();
    const past = await (await ask(`${place}/history/${encodeURIComponent(user)}?limit=20`)).json();
    const line = document.createElement("p");
    line.textContent = `${told.user} gave ${told.rewards} rewards and learns from ${told.cluster_size - 1} others` +
      (told.learns_from.length ? `: ${told.learns_from.slice(0, 12).join(", ")}${told.cluster_size > 13 ? ", …" : ""}` : ".");
    const tables = document.createElement("div");
    tables.className = "tables";
    tables.append(
      table("Why this item", ["item", "mean", "bonus", "sum"], told.scores.slice(0, 10).map((one) => [one.id, one.mean.toFixed(3), one.width.toFixed(3), one.ucb.toFixed(3)])),
      table("History", ["when", "what", "item", "reward"], past.events.reverse().map((one) => [new Date(one.at * 1000).toLocaleTimeString("en-GB"), one.kind, one.item ?? "", one.reward?.toFixed(3) ?? ""])),
    );
    target.replaceChildren(line, tables);
  } catch (error) {
    target.textContent = error.message;
  }
}

find("search").addEventListener("submit", (event) => { event.preventDefault(); explain(find("user").value); });
find("policy").addEventListener("change", () => { policy = find("policy").value; frames = []; find("explanation").replaceChildren(); reading.abort(); });
listen();
