"use strict";
// Samples come as server-sent events over fetch, so that a key can be sent; ids are only ever set as text.

const find = (id) => document.getElementById(id);
const kept = 300, recent = 10; // samples, which come once a second
let policy = null, samples = [], wait = 500, reading = null, heard = 0;
const map = new UserMap(find("map"), explain);

function headers() {
  const key = sessionStorage.getItem("coterie-key");
  return key ? { Authorization: `Bearer ${key}` } : {};
}

async function request(path, options = {}) {
  const response = await fetch(path, { headers: headers(), ...options });
  if (response.status === 401) {
    find("key-dialog").showModal();
    await new Promise((done) => find("key-dialog").addEventListener("close", done, { once: true }));
    sessionStorage.setItem("coterie-key", find("key").value.trim());
    return request(path, options);
  }
  if (!response.ok) throw new Error((await response.json()).detail);
  return response;
}

function showState(text, live) {
  if (find("state").textContent !== text) find("state").textContent = text;
  find("state").dataset.live = live ? "yes" : "no";
  document.body.dataset.live = live ? "yes" : "no";
}

async function choosePolicies() {
  const answer = await (await request("/v1/policies")).json();
  const names = answer.policies.sort((a, b) => b.users - a.users).map((one) => one.name);
  find("policy").replaceChildren(...names.map((name) => new Option(name, name, false, name === policy)));
  if (!names.includes(policy)) policy = names[0];
  if (policy === undefined) throw new Error("the service has no policy");
  find("policy").value = policy;
  showOutcomes();
}

async function listen() {
  for (;;) {
    const mine = (reading = new AbortController());
    try {
      await choosePolicies();
      const response = await request(`/v1/policies/${encodeURIComponent(policy)}/live`, { signal: mine.signal });
      heard = Date.now();
      await readSamples(response.body.getReader());
      throw new Error("the service has closed the stream");
    } catch (error) {
      if (mine.changed) continue;
      showState(`not live: ${mine.silent ? "no data for 10 seconds" : error.message}`, false);
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, 5000);
    }
  }
}

// A dead connection may never report an error: give it up when no data comes.
setInterval(() => {
  if (document.body.dataset.live !== "yes" || Date.now() - heard < 10_000) return;
  reading.silent = true;
  reading.abort();
}, 1000);

async function readSamples(reader) {
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
  const message = JSON.parse(data.slice(6));
  heard = Date.now();
  if (lines.includes("event: problem")) return showState(`not live: ${message}`, false);
  if (lines.includes("event: past")) {
    samples = [...samples.filter((one) => one.at < message[0].at), ...message].slice(-kept);
    message.forEach(assignHues);
    return;
  }
  wait = 500;
  assignHues(message);
  samples = [...samples.slice(-kept + 1), message];
  showState("live", true);
  show(message);
}

function mean(now, before, field) {
  const [sum, count] = [now[field][0] - before[field][0], now[field][1] - before[field][1]];
  return count > 0 ? sum / count : null;
}

const number = (value, digits = 0) =>
  value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: digits });
const signed = (value, digits) => (value === null ? "" : `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`);
const milliseconds = (value) => (value === null ? "–" : `≤ ${number(value * 1000, 1)} ms`);

function show(sample) {
  const before = samples[Math.max(0, samples.length - 1 - recent)];
  const seconds = Math.max(sample.at - before.at, 1e-3);
  showNumbers({
    [`Policy, ${sample.mode}`]: sample.kind,
    Users: number(sample.users),
    Clusters: number(sample.n_clusters),
    Rounds: number(sample.rounds),
    "Decisions a second": number((sample.decisions - before.decisions) / seconds, 1),
    Exploration: sample.exploring ? "uniform now" : `${number(sample.uniform_share * 100, 1)} % uniform`,
    "Waiting for reward": number(sample.waiting),
    "Expired": number(sample.expired),
    "Latency, median": milliseconds(sample.p50),
    "Latency, 99 %": milliseconds(sample.p99),
    Queue: number(sample.queue),
    "Noise σ̂": number(sample.sigma, 3),
  });
  map.update(sample.points, sample.users);
  showEmpty("map", !sample.users);
  showEmpty("sizes", !sample.users);
  showSizes(sample);
  showReward(sample);
  showLatency(sample);
  if (find("known").childElementCount !== Math.min(sample.points.length, 200))
    find("known").replaceChildren(...sample.points.slice(0, 200).map(([id]) => { const one = new Option(); one.value = id; return one; }));
}

// A chart without data says why, in its place.
function showEmpty(name, empty, why = null) {
  const note = find(`${name}-empty`);
  if (why !== null) note.textContent = why;
  note.hidden = !empty;
  find(name).hidden = empty;
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

function showSizes(sample) {
  const count = (field) => samples.reduce((sum, one) => sum + (one[field] || 0), 0);
  find("sizes-counts").textContent = `▼ ${count("merges")} merges, ▲ ${count("splits")} splits`;
  const largest = sample.clusters.slice(0, 3).map(([, size]) => size).join(", ");
  find("sizes").ariaLabel = `Sizes over time: ${sample.n_clusters} clusters now, the largest of ${largest} users`;
  drawSizes(find("sizes"), samples);
}

// A value for each sample, over the ten seconds before it.
function over(measure) {
  return samples.map((one, place) => measure(one, samples[Math.max(0, place - recent)]));
}

function showReward(sample) {
  const lines = ["own", "drawn"].map((field, place) => ({
    colour: ["--mark", "--other"][place],
    values: over((now, before) => mean(now, before, field)),
  }));
  const [own, drawn] = lines.map((line) => line.values.findLast((value) => value !== null));
  find("own-now").textContent = own === undefined ? "" : own.toFixed(2);
  find("drawn-now").textContent = drawn === undefined ? "" : drawn.toFixed(2);
  find("drawn-key").hidden = drawn === undefined;
  const why = sample.own[1] + sample.drawn[1] === 0
    ? "No rewards yet. A decision counts when its reward comes, or at once if the policy has a default reward."
    : "No decisions or rewards while this page was open, or in the five minutes before; the hours before are below.";
  showEmpty("reward", own === undefined && drawn === undefined, why);
  find("reward").ariaLabel = `Mean reward over time: ${number(own, 2)} now, ${number(drawn, 2)} where drawn uniformly`;
  drawLines(find("reward"), samples, lines, { label: (value) => value.toFixed(2) });
}

function showLatency(sample) {
  showEmpty("latency", samples.every((one) => one.p50 === null));
  const lines = ["p50", "p99"].map((field, place) => ({
    colour: ["--mark", "--other"][place],
    values: samples.map((one) => (one[field] === null ? null : one[field] * 1000)),
  }));
  find("latency").ariaLabel = `Latency of decisions: median ${milliseconds(sample.p50)}, 99 % ${milliseconds(sample.p99)}; ${sample.queue} events in the queue`;
  drawLines(find("latency"), samples, lines, { label: (value) => `${number(value)} ms`, logarithmic: true });
}

function table(caption, names, rows) {
  const made = document.createElement("table");
  made.createCaption().textContent = caption;
  const head = made.createTHead().insertRow();
  for (const name of names) { const cell = document.createElement("th"); cell.scope = "col"; cell.textContent = name; head.append(cell); }
  for (const row of rows) { const line = made.insertRow(); for (const value of row) line.insertCell().textContent = value; }
  return made;
}

function describeUser(explanation) {
  const others = explanation.cluster_size - 1, named = explanation.learns_from.slice(0, 12);
  const line = document.createElement("p"), user = document.createElement("strong");
  user.textContent = explanation.user;
  const rewards = `${explanation.rewards} ${explanation.rewards === 1 ? "reward" : "rewards"}`;
  if (!others) line.append(user, ` gave ${rewards} and learns from no other user yet.`);
  else line.append(user, ` gave ${rewards} and learns from ${others} ${others === 1 ? "other" : "others"}: ${named.join(", ")}${others > named.length ? ", …" : ""}`);
  return line;
}

function describeChoice(explanation) {
  const line = document.createElement("p");
  line.className = "note";
  const [best, second] = explanation.scores;
  if (!best) line.textContent = "The catalogue is empty: there is nothing to score.";
  else {
    const reason = second && best.mean < second.mean ? "its estimate is uncertain for this user, so its bonus is large" : "its estimated reward is highest";
    line.textContent = `The item with the highest score is ${best.id}: ${second ? reason : "it is the only one"}. The policy chooses by the sum of estimate and bonus.`;
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
    const found = await (await request(`${place}/users/${encodeURIComponent(user)}`)).json();
    const past = await (await request(`${place}/history/${encodeURIComponent(user)}?limit=20`)).json();
    if (map.chosen !== user) return; // another user was selected meanwhile
    const tables = document.createElement("div");
    tables.className = "tables";
    tables.append(
      table("Scores of items", ["item", "estimate", "bonus", "sum"], found.scores.slice(0, 10).map(scored)),
      table("History", ["when", "what", "item", "reward"], past.events.reverse().slice(0, 10).map(happened)),
    );
    target.replaceChildren(describeUser(found), describeChoice(found), tables);
  } catch (error) {
    target.textContent = error.message;
  }
}

find("search").addEventListener("submit", (event) => { event.preventDefault(); explain(find("user").value); });
find("policy").addEventListener("change", () => {
  policy = find("policy").value;
  samples = [];
  map.chosen = null;
  find("explanation").replaceChildren();
  reading.changed = true;
  reading.abort();
});
listen();
