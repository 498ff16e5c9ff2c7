"use strict";
// Frames come as server-sent events over fetch, so that a key can be sent; ids are only ever set as text.

const find = (id) => document.getElementById(id);
const kept = 300, recent = 10; // frames, which come once a second
let policy = null, frames = [], wait = 500, reading = null, heard = 0;
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
  if (find("state").textContent !== text) find("state").textContent = text;
  find("state").dataset.live = live ? "yes" : "no";
  document.body.dataset.live = live ? "yes" : "no";
}

async function choosePolicies() {
  const told = await (await ask("/v1/policies")).json();
  const names = told.policies.sort((a, b) => b.users - a.users).map((one) => one.name);
  find("policy").replaceChildren(...names.map((name) => new Option(name, name, false, name === policy)));
  if (!names.includes(policy)) policy = names[0];
  if (policy === undefined) throw new Error("the service has no policy");
  find("policy").value = policy;
}

async function listen() {
  for (;;) {
    const mine = (reading = new AbortController());
    try {
      await choosePolicies();
      const response = await ask(`/v1/policies/${encodeURIComponent(policy)}/live`, { signal: mine.signal });
      heard = Date.now();
      await readFrames(response.body.getReader());
      throw new Error("the service has closed the stream");
    } catch (error) {
      if (mine.changed) continue;
      say(`not live: ${mine.silent ? "nothing came for 10 seconds" : error.message}`, false);
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, 5000);
    }
  }
}

// A connection may be dead without an end: then nothing comes, and it is given up.
setInterval(() => {
  if (document.body.dataset.live !== "yes" || Date.now() - heard < 10_000) return;
  reading.silent = true;
  reading.abort();
}, 1000);

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
  const told = JSON.parse(data.slice(6));
  heard = Date.now();
  if (lines.includes("event: problem")) return say(`not live: ${told}`, false);
  if (lines.includes("event: past")) {
    frames = [...frames.filter((one) => one.at < told[0].at), ...told].slice(-kept);
    told.forEach(assignHues);
    return;
  }
  wait = 500;
  assignHues(told);
  frames = [...frames.slice(-kept + 1), told];
  say("live", true);
  show(told);
}

function mean(now, before, field) {
  const [sum, count] = [now[field][0] - before[field][0], now[field][1] - before[field][1]];
  return count > 0 ? sum / count : null;
}

const number = (value, digits = 0) =>
  value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });
const milliseconds = (value) => (value === null ? "–" : `≤ ${number(value * 1000, 1)} ms`);

function show(frame) {
  const before = frames[Math.max(0, frames.length - 1 - recent)];
  const seconds = Math.max(frame.at - before.at, 1e-3);
  showNumbers({
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
  });
  map.update(frame.points, frame.users);
  showSizes(frame);
  showReward(frame);
  showLatency(frame);
  if (find("known").childElementCount !== Math.min(frame.points.length, 200))
    find("known").replaceChildren(...frame.points.slice(0, 200).map(([id]) => { const one = new Option(); one.value = id; return one; }));
}

function showNumbers(cells) {
  find("numbers").replaceChildren(...Object.entries(cells).map(([name, value]) => {
    const cell = document.createElement("div"), term = document.createElement("dt"), shown = document.createElement("dd");
    term.textContent = name;
    shown.textContent = value;
    cell.append(term, shown);
    return cell;
  }));
}

function showSizes(frame) {
  const count = (field) => frames.reduce((sum, one) => sum + (one[field] || 0), 0);
  find("sizes-counts").textContent = `▼ ${count("merges")} merges, ▲ ${count("splits")} splits`;
  const largest = frame.clusters.slice(0, 3).map(([, size]) => size).join(", ");
  find("sizes").ariaLabel = `Sizes over time: ${frame.n_clusters} clusters now, the largest of ${largest} users`;
  drawSizes(find("sizes"), frames);
}

// A value for each frame: what was measured in the ten seconds before it.
function over(measure) {
  return frames.map((one, place) => measure(one, frames[Math.max(0, place - recent)]));
}

function showReward(frame) {
  const lines = ["own", "drawn"].map((field, place) => ({
    colour: ["--mark", "--other"][place],
    values: over((now, before) => mean(now, before, field)),
  }));
  const [own, drawn] = lines.map((line) => line.values.findLast((value) => value !== null));
  find("own-now").textContent = own === undefined ? "" : own.toFixed(2);
  find("drawn-now").textContent = drawn === undefined ? "" : drawn.toFixed(2);
  find("drawn-key").hidden = drawn === undefined;
  find("reward").ariaLabel = `Mean reward over time: ${number(own, 2)} now, ${number(drawn, 2)} where drawn uniformly`;
  drawLines(find("reward"), frames, lines, { label: (value) => value.toFixed(2) });
}

function showLatency(frame) {
  const lines = ["p50", "p99"].map((field, place) => ({
    colour: ["--mark", "--other"][place],
    values: frames.map((one) => (one[field] === null ? null : one[field] * 1000)),
  }));
  find("latency").ariaLabel = `Latency of decisions: median ${milliseconds(frame.p50)}, 99 % ${milliseconds(frame.p99)}; ${frame.queue} events in the queue`;
  drawLines(find("latency"), frames, lines, { label: (value) => `${number(value)} ms`, logarithmic: true });
}

function table(caption, names, rows) {
  const made = document.createElement("table");
  made.createCaption().textContent = caption;
  const head = made.createTHead().insertRow();
  for (const name of names) { const cell = document.createElement("th"); cell.scope = "col"; cell.textContent = name; head.append(cell); }
  for (const row of rows) { const line = made.insertRow(); for (const value of row) line.insertCell().textContent = value; }
  return made;
}

function who(told) {
  const others = told.cluster_size - 1, named = told.learns_from.slice(0, 12);
  const line = document.createElement("p"), user = document.createElement("strong");
  user.textContent = told.user;
  const rewards = `${told.rewards} ${told.rewards === 1 ? "reward" : "rewards"}`;
  if (!others) line.append(user, ` gave ${rewards} and learns from nobody else yet.`);
  else line.append(user, ` gave ${rewards} and learns from ${others} ${others === 1 ? "other" : "others"}: ${named.join(", ")}${others > named.length ? ", …" : ""}`);
  return line;
}

function why(told) {
  const line = document.createElement("p");
  line.className = "note";
  const [best, second] = told.scores;
  if (!best) line.textContent = "The catalogue is empty: there is nothing to score.";
  else {
    const reason = second && best.mean < second.mean ? "little is known of it for this user, so its bonus is large" : "its estimated reward is highest";
    line.textContent = `Of all items it would now be shown ${best.id}: ${second ? reason : "there is no other"}. The policy chooses by the sum of estimate and bonus.`;
  }
  return line;
}

const scored = (one) => [one.id, one.mean.toFixed(3), one.width.toFixed(3), one.ucb.toFixed(3)];
const happened = (one) => [new Date(one.at * 1000).toLocaleTimeString("en-GB"), one.kind, one.item ?? "", one.reward?.toFixed(3) ?? ""];

async function explain(user) {
  find("user").value = user;
  map.chosen = user;
  const place = `/v1/policies/${encodeURIComponent(policy)}`, target = find("explanation");
  try {
    const told = await (await ask(`${place}/users/${encodeURIComponent(user)}`)).json();
    const past = await (await ask(`${place}/history/${encodeURIComponent(user)}?limit=20`)).json();
    if (map.chosen !== user) return; // another was chosen meanwhile
    const tables = document.createElement("div");
    tables.className = "tables";
    tables.append(
      table("Why this item", ["item", "estimate", "bonus", "sum"], told.scores.slice(0, 10).map(scored)),
      table("History", ["when", "what", "item", "reward"], past.events.reverse().slice(0, 10).map(happened)),
    );
    target.replaceChildren(who(told), why(told), tables);
  } catch (error) {
    target.textContent = error.message;
  }
}

find("search").addEventListener("submit", (event) => { event.preventDefault(); explain(find("user").value); });
find("policy").addEventListener("change", () => {
  policy = find("policy").value;
  frames = [];
  map.chosen = null;
  find("explanation").replaceChildren();
  reading.changed = true;
  reading.abort();
});
listen();
