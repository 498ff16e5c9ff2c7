"use strict";
// Three small charts on canvas: a map of users, stacked sizes of clusters, and two lines.

function colourOf(cluster, size) {
  if (size < 2) return getComputedStyle(document.documentElement).getPropertyValue("--single").trim();
  const hue = (cluster * 137.508) % 360;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  return `hsl(${hue.toFixed(1)} 65% ${dark ? 62 : 43}%)`;
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

  update(points) {
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
    this.canvas.setAttribute("aria-label", `Map of ${points.length} users in ${this.sizes.size} clusters`);
  }

  place(dot, width, height) {
    const unit = Math.min(width, height) / 2 - 14;
    return [width / 2 + (dot.x / this.radius) * unit * (width > height ? 1.5 : 1), height / 2 - (dot.y / this.radius) * unit];
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

  // Lines from the middle of each cluster to its users show who belongs together.
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
        context.fillStyle = colour("--ink");
        context.fillText(id.slice(0, 40), Math.min(x + 12, width - 120), y + 4);
      }
    }
  }
}

function drawSizes(canvas, frames) {
  const { context, width, height, colour } = fitted(canvas);
  const bottom = height - 16;
  const slots = Math.max(frames.length, 12);
  frames.forEach((frame, place) => {
    const left = (place / slots) * width, wide = width / slots + 0.6;
    let level = bottom;
    const order = [...frame.clusters].sort((a, b) => (a[1] < 2) - (b[1] < 2) || a[0] - b[0]);
    for (const [cluster, size] of order) {
      const tall = (size / Math.max(frame.users, 1)) * (bottom - 4);
      context.fillStyle = colourOf(cluster, size);
      context.fillRect(left, level - tall, wide, tall);
      level -= tall;
    }
    const before = place ? frames[place - 1].n_clusters : frame.n_clusters;
    if (frame.n_clusters !== before) {
      context.fillStyle = colour("--faint");
      context.textAlign = "center";
      context.fillText(frame.n_clusters > before ? "▲" : "▼", Math.max(left, 6), height - 3);
    }
  });
}

function drawLines(canvas, lines) {
  const { context, width, height, colour } = fitted(canvas);
  const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
  if (!values.length) return;
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1e-9);
  const y = (value) => 8 + (1 - (value - low) / (high - low)) * (height - 16), start = 44;
  context.fillStyle = colour("--faint");
  context.strokeStyle = colour("--line");
  context.lineWidth = 1;
  context.textAlign = "right";
  for (const value of new Set([high, 0, low])) {
    if (value === 0 && low < 0 && y(low) - y(0) < 14) continue; // the labels would lie on each other
    context.fillText(value.toFixed(2), start - 8, y(value) + 4);
    context.beginPath();
    context.moveTo(start, y(value));
    context.lineTo(width, y(value));
    context.stroke();
  }
  for (const line of lines) {
    context.beginPath();
    context.lineWidth = 2;
    context.strokeStyle = colour(line.colour);
    let pen = false;
    line.values.forEach((value, place) => {
      if (value === null) return;
      const x = start + (place / Math.max(line.values.length - 1, 11)) * (width - start);
      pen ? context.lineTo(x, y(value)) : context.moveTo(x, y(value));
      pen = true;
    });
    context.stroke();
  }
}
