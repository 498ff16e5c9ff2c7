"use strict";
// Small charts on canvas: a map of users, stacked sizes of clusters, and lines over time.

// The first ten clusters of two or more users have fixed hues; others get one by their number.
const hues = [212, 28, 152, 350, 272, 186, 322, 52, 104, 240];
const slots = hues.map(() => ({ cluster: null, seen: 0 }));

function assignHues(sample) {
  const present = new Set(sample.clusters.filter(([, size]) => size > 1).map(([cluster]) => cluster));
  for (const cluster of present) {
    const mine = slots.find((slot) => slot.cluster === cluster);
    const free = slots.filter((slot) => !present.has(slot.cluster)).sort((one, other) => one.seen - other.seen)[0];
    if (mine || free) Object.assign(mine || free, { cluster, seen: sample.at });
  }
}

function colourOf(cluster, size) {
  if (size < 2) return getComputedStyle(document.documentElement).getPropertyValue("--single").trim();
  const slot = slots.findIndex((one) => one.cluster === cluster);
  const hue = slot < 0 ? (cluster * 137.508) % 360 : hues[slot];
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return `hsl(${hue.toFixed(1)} 68% ${dark ? 62 : 45}%)`;
}

function fitted(canvas) {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  context.font = "12px system-ui, sans-serif";
  return { context, width, height, colour };
}

class UserMap {
  constructor(canvas, select) {
    this.canvas = canvas;
    this.dots = new Map(); // id -> {x, y, toX, toY, cluster, pulls}
    this.sizes = new Map(); // cluster -> how many of its users are shown
    this.chosen = null;
    this.radius = 1;
    canvas.addEventListener("click", (event) => {
      const box = canvas.getBoundingClientRect();
      const found = this.nearest(event.clientX - box.left, event.clientY - box.top);
      if (found !== null) select(found);
    });
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const ids = [...this.dots.keys()];
      if (!step || !ids.length) return;
      event.preventDefault();
      select(ids[(ids.indexOf(this.chosen) + step + ids.length) % ids.length]);
    });
    const draw = () => { this.draw(); requestAnimationFrame(draw); };
    requestAnimationFrame(draw);
  }

  update(points, users) {
    const seen = new Set();
    let far = 1e-9;
    for (const [id, x, y, cluster, pulls] of points) {
      seen.add(id);
      far = Math.max(far, Math.abs(x), Math.abs(y));
      const dot = this.dots.get(id) || { x: 0, y: 0 };
      this.dots.set(id, Object.assign(dot, { toX: x, toY: y, cluster, pulls }));
    }
    for (const id of this.dots.keys()) if (!seen.has(id)) this.dots.delete(id);
    this.radius = this.radius === 1 ? far : Math.max(far, this.radius * 0.97);
    this.sizes = new Map();
    for (const point of points) this.sizes.set(point[3], (this.sizes.get(point[3]) || 0) + 1);
    this.canvas.setAttribute("aria-label", `Map of ${points.length} of ${users} users in ${this.sizes.size} clusters`);
  }

  place(dot, width, height) {
    const tall = height / 2 - 14, wide = Math.min(width / 2 - 14, tall * 1.5);
    return [width / 2 + (dot.x / this.radius) * wide, height / 2 - (dot.y / this.radius) * tall];
  }

  nearest(x, y) {
    let best = null, least = 20 ** 2;
    for (const [id, dot] of this.dots) {
      const [px, py] = this.place(dot, this.canvas.clientWidth, this.canvas.clientHeight);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [best, least] = [id, distance];
    }
    return best;
  }

  // Lines from the centre of each cluster to its users.
  drawSpokes(context, width, height) {
    const middles = new Map();
    for (const dot of this.dots.values()) {
      if (this.sizes.get(dot.cluster) < 2) continue;
      const [x, y] = this.place(dot, width, height), sum = middles.get(dot.cluster) || [0, 0];
      middles.set(dot.cluster, [sum[0] + x, sum[1] + y]);
    }
    context.lineWidth = 1.5;
    for (const dot of this.dots.values()) {
      const sum = middles.get(dot.cluster), size = this.sizes.get(dot.cluster);
      if (!sum) continue;
      context.beginPath();
      context.globalAlpha = 0.28;
      context.strokeStyle = colourOf(dot.cluster, size);
      context.moveTo(sum[0] / size, sum[1] / size);
      context.lineTo(...this.place(dot, width, height));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  draw() {
    const { context, width, height, colour } = fitted(this.canvas);
    for (const dot of this.dots.values()) {
      dot.x += (dot.toX - dot.x) * 0.08;
      dot.y += (dot.toY - dot.y) * 0.08;
    }
    this.drawSpokes(context, width, height);
    let named = () => {};
    for (const [id, dot] of this.dots) {
      const [x, y] = this.place(dot, width, height);
      context.beginPath();
      context.arc(x, y, 3.5 + Math.min(6, Math.log2(1 + dot.pulls) * 0.7), 0, 2 * Math.PI);
      context.globalAlpha = 0.85;
      context.fillStyle = colourOf(dot.cluster, this.sizes.get(dot.cluster));
      context.fill();
      context.globalAlpha = 1;
      if (id === this.chosen) {
        context.lineWidth = 2;
        context.strokeStyle = colour("--ink");
        context.stroke();
        named = () => this.drawName(context, id.slice(0, 40), x, y, width, colour);
      }
    }
    named();
  }

  // Draw the name above all dots, on the side of its own dot that has room.
  drawName(context, name, x, y, width, colour) {
    const right = x + 14 + context.measureText(name).width < width;
    context.textAlign = right ? "left" : "right";
    context.lineWidth = 4;
    context.lineJoin = "round";
    context.strokeStyle = colour("--card");
    context.fillStyle = colour("--ink");
    const place = [name, right ? x + 14 : x - 14, y + 4];
    context.strokeText(...place);
    context.fillText(...place);
  }
}

// The time axis: at least one minute, with the latest sample at the right end.
function timeAxis(samples, left, width, least = 60) {
  const last = samples.at(-1).at, span = Math.max(last - samples[0].at, least);
  return { x: (at) => left + (1 - (last - at) / span) * (width - left), span };
}

function ago(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86_400)} days ago`;
}

function drawTimes(context, axis, left, width, height, colour) {
  context.fillStyle = colour;
  context.textAlign = "left";
  context.fillText(ago(axis.span), left, height - 3);
  context.textAlign = "right";
  context.fillText("now", width, height - 3);
}

const margin = 60;

function drawSizes(canvas, samples) {
  const { context, width, height, colour } = fitted(canvas);
  const bottom = height - 44, top = 10, axis = timeAxis(samples, margin, width);
  const most = Math.max(...samples.map((sample) => sample.users), 1), tall = (size) => (size / most) * (bottom - top);
  context.fillStyle = colour("--faint");
  context.textAlign = "right";
  for (const value of [most, 0]) context.fillText(value.toLocaleString("en"), margin - 8, bottom - tall(value) + 4);
  samples.forEach((sample, place) => {
    const next = samples[place + 1] || sample, left = axis.x(sample.at);
    const end = next === sample ? width : Math.min(axis.x(next.at), axis.x(sample.at + 3)); // a gap stays empty
    let level = bottom;
    const order = [...sample.clusters].sort((a, b) => (a[1] < 2) - (b[1] < 2) || a[0] - b[0]);
    for (const [cluster, size] of order) {
      context.fillStyle = colourOf(cluster, size);
      context.fillRect(left, level - tall(size), Math.max(end - left, 1) + 0.4, tall(size));
      level -= tall(size);
    }
  });
  drawMarks(context, samples, axis, bottom + 13, colour);
  drawTimes(context, axis, margin, width, height, colour("--faint"));
}

// Draw one mark where several would overlap.
function drawMarks(context, samples, axis, y, colour) {
  context.textAlign = "center";
  for (const [field, sign, name, row] of [["merges", "▼", "--other", 0], ["splits", "▲", "--mark", 11]]) {
    let last = -Infinity;
    context.fillStyle = colour(name);
    for (const sample of samples) {
      const x = axis.x(sample.at);
      if (!sample[field] || x - last < 9) continue;
      context.fillText(sign, Math.max(x, margin + 5), y + row);
      last = x;
    }
  }
}

// Lines over time, from 0 or on a logarithmic scale; bars, if there are any, have a scale of their own.
function drawLines(canvas, samples, lines, { label, logarithmic = false, gap = 15, least = 60, bars = [] }) {
  const { context, width, height, colour } = fitted(canvas);
  const scale = logarithmic ? Math.log10 : (value) => value;
  const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
  if (!values.length) return;
  const low = logarithmic ? Math.min(...values) / 2 : Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
  const axis = timeAxis(samples, margin, width, least), bottom = height - 22, share = (value) => (scale(value) - scale(low)) / (scale(high) - scale(low));
  const y = (value) => 8 + (1 - share(value)) * (bottom - 8);
  const ticks = logarithmic ? [1, 10, 100, 1000].filter((value) => low <= value && value <= high) : [...new Set([high, 0, low])];
  const most = Math.max(...bars, 1), wide = Math.max(axis.x(3000) - axis.x(0), 1);
  context.fillStyle = colour("--line");
  bars.forEach((count, place) => context.fillRect(axis.x(samples[place].at) - wide / 2, bottom, wide, -(count / most) * (bottom - 8) * 0.9));
  context.fillStyle = colour("--faint");
  context.strokeStyle = colour("--line");
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const value of ticks) {
    if (value === 0 && low < 0 && y(low) - y(0) < 14) continue; // the labels would overlap
    context.fillText(label(value), margin - 8, y(value) + 4);
    context.beginPath();
    context.moveTo(margin, y(value));
    context.lineTo(width, y(value));
    context.stroke();
  }
  for (const line of lines) drawLine(context, line, samples, axis, y, colour(line.colour), gap);
  drawTimes(context, axis, margin, width, height, colour("--faint"));
}

function drawLine(context, line, samples, axis, y, colour, gap) {
  context.beginPath();
  context.lineWidth = 2;
  context.lineJoin = context.lineCap = "round";
  context.strokeStyle = colour;
  let before = -Infinity;
  line.values.forEach((value, place) => {
    if (value === null) return;
    const at = samples[place].at;
    if (at - before > gap) {
      context.moveTo(axis.x(at) - 2, y(value)); // a value alone is a dot
      context.lineTo(axis.x(at), y(value));
    } else context.lineTo(axis.x(at), y(value));
    before = at;
  });
  context.stroke();
}
